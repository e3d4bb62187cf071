"""Fields that a target refused, or that the config excludes, are not sent to it."""

import asyncio
import json

import pytest
from gateway_harness import SHORT, ask, post, running, send
from gateway_harness import config as upstreams
from support.scripted_upstream import ScriptedUpstream, status
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES

from dragoman.config import loads
from dragoman.model.messages import (
    Media,
    Message,
    Reasoning,
    Request,
    Settings,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)

REFUSALS = [
    {
        "message": "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
        "type": "invalid_request_error",
        "param": "reasoning.effort",
        "code": "unsupported_parameter",
    },
    {"message": "Unsupported parameter.", "type": "invalid_request_error", "param": "reasoning.effort"},
    {"message": "Encrypted content is not supported with this model.", "type": "invalid_request_error"},
]
THINKING = Settings(max_tokens=9000, reasoning=Reasoning(effort="high"))


def config(url: str, more: str = "") -> str:
    return (
        f'[server]\nretries = 0\n[upstreams.r]\nprotocol = "{RESPONSES}"\nbase_url = "{url}"\n'
        f'credential = "none"\n{more}'
    )


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal["message"][:20])
# A refused field of a Responses client is omitted, too.
@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("stream", [True, False])
def test_a_refused_field_is_omitted_at_once_and_later(
    client: str, refusal: dict[str, str], stream: bool
) -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with served, running(config(served.url)) as here:
            served.script(status(400, json.dumps({"error": refusal}).encode()))
            for _ in range(2):
                got = await ask(here, client, "r/my-deployment", stream=stream, settings=THINKING)
                assert got.status == 200
            asked = [seen.json for seen in served.seen]
            assert [("include" in body, "reasoning" in body) for body in asked] == [
                (True, True),
                (False, False),
                (False, False),
            ]

    asyncio.run(scene())


EFFORT = (
    "Unsupported value: 'max' is not supported with the 'x' model. Supported values are: 'low' and 'high'."
)


@pytest.mark.parametrize("client", [CHAT, RESPONSES])
def test_a_refusal_names_the_efforts_that_a_model_accepts(client: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with served, running(config(served.url)) as here:
            refusal = {"message": EFFORT, "param": "reasoning.effort"}
            served.script(status(400, json.dumps({"error": refusal}).encode()))
            settings = Settings(max_tokens=9000, reasoning=Reasoning(effort="max"))
            for _ in range(2):
                got = await ask(here, client, "r/my-deployment", settings=settings)
                assert got.status == 200
            assert [seen.json["reasoning"]["effort"] for seen in served.seen] == ["max", "high", "high"]

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("upstream", "settings", "message", "field", "left"),
    [
        (
            ANTHROPIC,
            Settings(max_tokens=99, temperature=0.2),
            "`temperature` is deprecated for this model.",
            "temperature",
            None,
        ),
        (
            CHAT,
            Settings(max_tokens=99, stop=("END",)),
            "Unsupported parameter: 'stop' is not supported with this model.",
            "stop",
            None,
        ),
        (
            CHAT,
            Settings(max_tokens=99),
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
            "max_tokens",
            "max_completion_tokens",
        ),
        (
            ANTHROPIC,
            THINKING,
            '"thinking.type.adaptive": adaptive thinking is not supported on this model',
            "output_config",
            "thinking",
        ),
    ],
)
@pytest.mark.parametrize("client", [ANTHROPIC, GEMINI])
def test_a_refused_setting_is_sent_no_more(
    client: str, upstream: str, settings: Settings, message: str, field: str, left: str | None
) -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with served, running(upstreams(served.url)) as here:
            served.script(status(400, json.dumps({"error": {"message": message}}).encode()))
            for _ in range(2):
                got = await ask(here, client, f"{SHORT[upstream]}/my-deployment", settings=settings)
                assert got.status == 200
            bodies = [seen.json for seen in served.seen]
            assert [field in body for body in bodies] == [True, False, False]
            assert left is None or left in bodies[-1]

    asyncio.run(scene())


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported value: 'reasoning.effort' does not support 'max'.",
        "input: must not be empty",
    ],
)
def test_any_other_refusal_is_passed_to_the_client(message: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with served, running(config(served.url)) as here:
            served.script(status(400, json.dumps({"error": {"message": message}}).encode()))
            got = await ask(here, CHAT, "r/my-deployment", settings=THINKING)
            assert message in got.is_refusal(400)
            assert len(served.seen) == 1

    asyncio.run(scene())


def test_a_strict_upstream_loses_nothing() -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with served, running(config(served.url, "strict = true\n")) as here:
            served.script(status(400, json.dumps({"error": REFUSALS[0]}).encode()))
            got = await ask(here, CHAT, "r/my-deployment", settings=THINKING)
            assert "reasoning.effort" in got.is_refusal(400)

    asyncio.run(scene())


def test_the_config_states_what_a_model_accepts() -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        listed = '{ name = "my-deployment", reasons = false }, { name = "gpt-4.1", reasons = true }'
        async with served, running(config(served.url, f"models = [{listed}]\n")) as here:
            for model in ("my-deployment", "gpt-4.1", "gpt-4.1-mini"):
                await ask(here, CHAT, f"r/{model}", settings=THINKING)
            assert ["include" in seen.json for seen in served.seen] == [False, True, False]

    asyncio.run(scene())


def test_facts_of_the_config_override_the_name() -> None:
    listed = '[{ name = "gpt-4.1", reasons = true, images = false, search = true }]'
    (upstream,) = loads(config("http://127.0.0.1:1", f"models = {listed}\n")).upstreams.values()
    takes = upstream.target("gpt-4.1").takes
    assert (takes.reasons, takes.images, takes.search, takes.audio) == (True, False, True, False)
    assert upstream.target("gpt-4o").facts is None


PICTURE = Media(kind="image", media_type="image/png", data="iVBORw0KGgo=")
SEEN = Message("user", (Text("What is it?"), PICTURE))
SHOWN = (
    Message("user", (Text("Take a picture."),)),
    Message("assistant", (ToolCall(id="call_1", name="shot", arguments="{}"),)),
    Message("user", (ToolResult(call_id="call_1", parts=SEEN.parts),)),
)


@pytest.mark.parametrize("client", PROTOCOLS)
def test_refused_images_are_replaced_at_once_and_from_then_on(client: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with served, running(config(served.url)) as here:
            refusal = {"error": {"message": "my-deployment does not support image input."}}
            served.script(status(400, json.dumps(refusal).encode()))
            for _ in range(2):
                request = Request(model="r/my-deployment", messages=(SEEN,), settings=Settings(max_tokens=99))
                got = await send(here, client, request)
                assert got.status == 200
            shown = [b"input_image" in seen.body for seen in served.seen]
            assert shown == [True, False, False]

    asyncio.run(scene())


@pytest.mark.parametrize("upstream", PROTOCOLS)
@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("messages", [(SEEN,), SHOWN], ids=["asked", "shown by a tool"])
def test_a_model_without_vision_gets_text(client: str, upstream: str, messages: tuple[Message, ...]) -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        each = 'models = [{ name = "blind", images = false }]'
        async with served, running(upstreams(served.url, each=each)) as here:
            name = SHORT[upstream]
            for model, blind in (("blind", True), ("m", False)):
                request = Request(
                    model=f"{name}/{model}",
                    messages=messages,
                    tools=(Tool(name="shot", parameters={"type": "object"}),),
                    settings=Settings(max_tokens=1000),
                )
                got = await send(here, client, request)
                assert got.status == 200
                body = json.dumps(served.last.json)
                assert ("iVBORw0KGgo=" in body, "this model cannot see images" in body) == (not blind, blind)
                assert ("images-replaced" in got.headers.get("x-dragoman-warnings", "")) == blind

    asyncio.run(scene())


def test_a_translated_tool_server_opts_into_its_feature() -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with served, running(upstreams(served.url)) as here:
            server = {"type": "mcp", "server_label": "docs", "server_url": "https://docs.example"}
            for tools in ([server | {"require_approval": "never"}], []):
                body = {"model": "a/m", "input": "Hello", "tools": tools}
                got = await post(here, RESPONSES, "/v1/responses", json.dumps(body).encode(), stream=False)
                assert got.status == 200
            betas = [seen.headers.get("anthropic-beta") for seen in served.seen]
            assert betas == ["mcp-client-2025-11-20", None]

    asyncio.run(scene())
