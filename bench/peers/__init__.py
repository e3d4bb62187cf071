"""Other gateways, each with a minimal config, without logging, in one process."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec

from ..answers import ANTHROPIC, CHAT
from ..processes import ROOT, Running, free_port
from ..shapes import BRIEF, FAULTS, PACED, PACED_SHORT, SHORT, STREAM
from ..subjects import Place, Subject

HOME = ROOT / ".bench"  # not in `.cache`: building the documentation empties that
_PATIENCE = 60.0


def models() -> list[str]:
    """All models: some gateways must know them in advance."""
    return [*(shape.model for shape in (SHORT, STREAM, BRIEF, PACED, PACED_SHORT)), FAULTS]


_LITELLM = """\
model_list:
  - model_name: "anthropic/*"
    litellm_params: {{model: "anthropic/*", api_base: "http://127.0.0.1:{upstream}", api_key: bench}}
  - model_name: "*"
    litellm_params: {{model: "openai/*", api_base: "http://127.0.0.1:{upstream}/v1", api_key: bench}}
litellm_settings:
  telemetry: false
  use_chat_completions_url_for_anthropic_messages: true
"""


def _litellm(folder: Path, upstream: int) -> Running:
    port = free_port()
    config = folder / "litellm.yaml"
    config.write_text(_LITELLM.format(upstream=upstream))
    command = [str(HOME / "litellm" / "bin" / "litellm"), "--config", str(config)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--num_workers", "1", "--telemetry", "False"]
    quiet = {"LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_DOCS": "True"}
    quiet["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"
    return Running(command, folder=folder, port=port, PYTHONPATH="", **quiet)


def _router(folder: Path, upstream: int) -> Running:
    port = free_port()
    provider = {
        "name": "bench",
        "api_base_url": f"http://127.0.0.1:{upstream}/v1/chat/completions",
        "api_key": "bench",
        "models": models(),
    }
    config = {
        "HOST": "127.0.0.1",
        "PORT": port,
        "LOG": False,
        "Providers": [provider],
        "Router": {"default": f"bench,{STREAM.model}"},
    }
    place = folder / ".claude-code-router"
    place.mkdir()
    (place / "config.json").write_bytes(msgspec.json.encode(config))
    command = ["node", str(HOME / "claude-code-router" / "node_modules" / ".bin" / "ccr"), "start"]
    return Running(command, folder=folder, port=port)


def _portkey(folder: Path, upstream: int) -> Running:
    port = free_port()
    main = HOME / "portkey" / "node_modules" / "@portkey-ai" / "gateway" / "build" / "start-server.js"
    preload = ["--import", str(Path(__file__).parent / "portkey_preload.mjs")]
    return Running(["node", *preload, str(main), f"--port={port}", "--headless"], folder=folder, port=port)


_TENSORZERO = """\
[models."{client}"]
routing = ["bench"]
[models."{client}".providers.bench]
type = "{kind}"
model_name = "{model}"
api_base = "{base}"
api_key_location = "env::BENCH_KEY"
"""


def _tensorzero(folder: Path, upstream: int) -> Running:
    root = f"http://127.0.0.1:{upstream}/v1/"
    config = ["[gateway]\nobservability.enabled = false\n"]
    for name in models():
        config.append(_TENSORZERO.format(client=name, kind="openai", model=name, base=root))
        config.append(_TENSORZERO.format(client="a-" + name, kind="anthropic", model=name, base=root))
    (folder / "tensorzero.toml").write_text("".join(config))
    python = HOME / "tensorzero" / "bin" / "python"
    script = Path(__file__).parent / "tensorzero_gateway.py"
    keys = {"BENCH_KEY": "bench", "PYTHONPATH": ""}
    running = Running([str(python), str(script), "tensorzero.toml", "port.txt"], folder=folder, **keys)
    told = folder / "port.txt"
    while not (told.exists() and told.read_text().endswith("\n")):  # it chooses its own port
        if time.monotonic() - running.started > _PATIENCE:
            raise RuntimeError(f"it does not say its port: {running.said()}")
        time.sleep(0.005)
    running.port = int(told.read_text())
    return running


def _portkey_place(provider: str) -> Place:
    host = "http://127.0.0.1:{upstream}/v1"
    return Place(headers={"x-portkey-provider": provider, "x-portkey-custom-host": host})


_TENSORZERO_PATH = "/openai/v1/chat/completions"

PEERS = (
    Subject(
        name="LiteLLM",
        start=_litellm,
        pairs={
            (CHAT, CHAT): Place(),
            (ANTHROPIC, CHAT): Place(),
            (CHAT, ANTHROPIC): Place("anthropic/{}"),
        },
    ),
    Subject(name="claude-code-router", start=_router, pairs={(ANTHROPIC, CHAT): Place("bench,{}")}),
    Subject(
        name="Portkey",
        start=_portkey,
        pairs={(CHAT, CHAT): _portkey_place("openai"), (CHAT, ANTHROPIC): _portkey_place("anthropic")},
    ),
    Subject(
        name="TensorZero",
        start=_tensorzero,
        pairs={
            (CHAT, CHAT): Place("tensorzero::model_name::{}", _TENSORZERO_PATH),
            (CHAT, ANTHROPIC): Place("tensorzero::model_name::a-{}", _TENSORZERO_PATH),
        },
    ),
)
