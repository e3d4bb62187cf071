"""The demo gateway: its config, and the text that says what to try."""

from __future__ import annotations

from collections.abc import Callable

from ...config import loads
from ...config.types import Config, ServerConfig
from ...conform import scripted
from ...gateway.process.run import serve
from ...observe import logs
from ...protocols.registry import DEFAULT_PROTOCOL, PROTOCOLS
from ..serve.service import until_interrupted

SHOWN = (
    "demo",
    "demo-misnamed",
    "demo-stringly",
    "demo-interleaved",
    "demo-leak",
    "demo-cut",
    "demo-ratelimit",
)


def config(url: str, host: str, port: int) -> Config:
    """One upstream per protocol. Every model goes to the usual protocol, an unknown model to `demo`."""
    upstreams = [
        f'[upstreams.{name}]\nprotocol = "{name}"\nbase_url = "{url}"\ncredential = "none"'
        for name in PROTOCOLS
    ]
    models = "\n".join(
        f'[[routes]]\nmatch = "{name}"\nto = "{DEFAULT_PROTOCOL.name}/{name}"' for name in scripted.BEHAVIOURS
    )
    rest = f'[[routes]]\nmatch = "*"\nto = "{DEFAULT_PROTOCOL.name}/demo"'
    server = f'[server]\nhost = "{host}"\nport = {port}'
    return loads("\n\n".join([server, *upstreams, models, rest]), shown="the demo", env={})


def run(host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until interrupted."""
    logs.set_up("warning")
    until_interrupted(_run(host, port, say))


async def _run(host: str, port: int, say: Callable[[str], None]) -> None:
    url, stop = await scripted.serve()
    try:
        await serve(config(url, host, port), ready=lambda address: say(welcome(address)))
    finally:
        await stop()


def welcome(address: str) -> str:
    tool = (
        '{"name":"Bash","description":"Run a shell command","input_schema":{"type":"object",'
        '"properties":{"command":{"type":"string"}},"required":["command"]}}'
    )
    body = (
        f'{{"model":"demo-misnamed","max_tokens":500,"stream":true,"tools":[{tool}],'
        '"messages":[{"role":"user","content":"Run the command `ls -la`"}]}'
    )
    behaviours = [f"  {name:<18} {scripted.BEHAVIOURS[name].description}" for name in SHOWN]
    return "\n".join(
        [
            f"Dragoman is at {address}, with a scripted model behind it. Ctrl-C ends it.",
            "",
            "Send a request as an Anthropic client. The model speaks OpenAI Chat and misnames a parameter:",
            "",
            f"  curl -sN {address}/v1/messages -H 'content-type: application/json' -d '{body}'",
            "",
            "Then see the request, both sides of the answer and what was mended:",
            "",
            f"  {address}/inspector",
            "",
            "The name of the model chooses how it misbehaves:",
            *behaviours,
            f"  … and {len(scripted.BEHAVIOURS) - len(SHOWN)} more: curl -s {address}/v1/models",
            "",
            "Point an agent at it, from another terminal:",
            f"  dragoman run{_port(address)} --model demo claude    # `dragoman run` lists the others",
            f"  OPENAI_BASE_URL={address}/v1 OPENAI_API_KEY=demo …",
            "",
        ]
    )


def _port(address: str) -> str:
    """The option that `dragoman run` needs, unless the port is the default."""
    port = address.rpartition(":")[2]
    return "" if port == str(ServerConfig().port) else f" --port {port}"
