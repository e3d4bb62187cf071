"""Routes with conditions (`when`): on images, size, reasoning, tools and the client, in every protocol."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from gateway_harness import Gateway, Got, post, running, send
from support.scripted_upstream import ScriptedUpstream
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES

from dragoman.config import loads
from dragoman.config.route_types import WhenConfig
from dragoman.config.when import WHEN
from dragoman.model.messages import (
    Format,
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
from dragoman.routing.conditions import described

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE = Media(kind="image", media_type="image/png", data=PIXEL)
PDF = Media(kind="document", media_type="application/pdf", data="JVBERi0=")
CLAUDE = {
    "user_agent": "claude-cli/2.1.197 (external, cli)",
    "x_app": "cli",
    "anthropic_beta": "claude-code-20250219",
}
USUAL = '[[routes]]\nmatch = "*"\nto = "usual/demo"\n'


def special(when: str, match: str = "") -> str:
    return f'[[routes]]\n{match}when = {{ {when} }}\nto = "special/demo"\n'


def upstreams(url: str, protocol: str) -> str:
    rest = f'protocol = "{protocol}"\nbase_url = "{url}"\ncredential = "none"\n'
    return "".join(f"[upstreams.{name}]\n{rest}" for name in ("usual", "special", "small"))


@asynccontextmanager
async def served(routes: str, more: str = "") -> AsyncGenerator[tuple[ScriptedUpstream, Gateway]]:
    upstream = ScriptedUpstream(pace=1)
    async with upstream, running(upstreams(upstream.url, CHAT) + more + routes) as gateway:
        yield upstream, gateway


async def why(gateway: Gateway, got: Got) -> tuple[str, str]:
    """The upstream of the last attempt, and why it was chosen."""
    assert got.status == 200, got.body
    id = got.headers["x-dragoman-exchange"]
    async with gateway.session.get(f"{gateway.url}/exchanges/{id}") as response:
        last = (await response.json())["attempts"][-1]
    return last["target"].removesuffix("/demo"), last["why"]


def asked(*parts: Any, tools: tuple[Tool, ...] = (), model: str = "m", **settings: Any) -> Request:
    limit = {"max_tokens": 1000, **settings}
    said = Message("user", (Text("Hello"), *parts))
    return Request(model=model, messages=(said,), tools=tools, stream=True, settings=Settings(**limit))


def seen_by_a_tool() -> Request:
    """The image is in the result of a tool."""
    call = Message("assistant", (ToolCall(id="call_1", name="look", arguments="{}"),))
    result = Message("user", (ToolResult(call_id="call_1", parts=(IMAGE,)),))
    plain = asked(tools=(Tool(name="look", parameters={"type": "object"}),))
    return msgspec.structs.replace(plain, messages=(*plain.messages, call, result))


LOOK = Tool(name="mcp__files__look", parameters={"type": "object"})
SEARCH = Tool(name="web_search", kind="hosted", hosted="web_search")
MEETS = {
    "images": ("images = true", asked(IMAGE), "images"),
    "images in a result": ("images = true", seen_by_a_tool(), "images"),
    "no images": ("images = false", asked(), "no images"),
    "effort": ("thinking = true", asked(reasoning=Reasoning(enabled=True, effort="high")), "thinking"),
    "no thinking": ("thinking = false", asked(), "no thinking"),
    "a tool": ('tools = ["other", "mcp__*"]', asked(tools=(LOOK,)), "tool mcp__files__look"),
    "one name": ('tools = "MCP__files__look"', asked(tools=(LOOK,)), "tool mcp__files__look"),
    "all": (
        'images = true, tools = ["mcp__*"]',
        asked(IMAGE, tools=(LOOK,)),
        "images, tool mcp__files__look",
    ),
}
FAILS = {
    "images": ("images = true", asked()),
    "a document": (
        "images = true",
        asked(Media(kind="document", media_type="application/pdf", data="JVBERi0=")),
    ),
    "no images": ("images = false", asked(IMAGE)),
    "thinking": ("thinking = true", asked()),
    "tools": ('tools = ["mcp__*"]', asked(tools=(Tool(name="look", parameters={"type": "object"}),))),
    "one of two": ("images = true, thinking = true", asked(IMAGE)),
    "client": ('client = "claude-code"', asked()),
    "background": ("background = true", asked(max_tokens=1)),
    "tokens": ("tokens_over = 1000", asked()),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", MEETS)
def test_a_request_that_meets_the_conditions_takes_the_route(name: str, protocol: str) -> None:
    when, request, reason = MEETS[name]

    async def scene() -> None:
        async with served(special(when) + USUAL) as (_, gateway):
            got = await send(gateway, protocol, request)
            assert await why(gateway, got) == ("special", f'route "*" when {reason}')

    asyncio.run(scene())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", FAILS)
def test_a_request_that_misses_one_condition_takes_the_next_route(name: str, protocol: str) -> None:
    when, request = FAILS[name]

    async def scene() -> None:
        async with served(special(when) + USUAL) as (_, gateway):
            assert await why(gateway, await send(gateway, protocol, request)) == ("usual", 'route "*"')

    asyncio.run(scene())


@pytest.mark.parametrize("protocol", [ANTHROPIC, RESPONSES, GEMINI])
def test_a_search_of_the_provider_is_a_tool(protocol: str) -> None:
    more = '[search]\nurl = "http://127.0.0.1:9"\n'

    async def scene() -> None:
        async with served(special('tools = ["web_search"]') + USUAL, more) as (_, gateway):
            got = await send(gateway, protocol, asked(tools=(SEARCH, LOOK)))
            assert await why(gateway, got) == ("special", 'route "*" when tool web_search')

    asyncio.run(scene())


def test_a_long_prompt_takes_the_route_for_long_prompts() -> None:
    long = asked(Text("The quick brown fox jumps over the lazy dog. " * 400))

    async def scene() -> None:
        async with served(special("tokens_over = 3_000") + USUAL) as (_, gateway):
            target, reason = await why(gateway, await send(gateway, CHAT, long))
            assert target == "special"
            assert reason.startswith('route "*" when about 4,')
            assert (await why(gateway, await send(gateway, CHAT, asked())))[0] == "usual"
            assert (await why(gateway, await send(gateway, CHAT, long)))[0] == "special"

    asyncio.run(scene())


BACKGROUND = {
    "title": asked(format=Format("schema", schema={"type": "object"}), reasoning=Reasoning(enabled=False)),
    "quota": asked(max_tokens=1),
    "small model": asked(model="claude-haiku-4-5"),
}
MAIN = {
    "with tools": asked(tools=(LOOK,), model="claude-haiku-4-5"),
    "a summary": asked(model="claude-sonnet-4-5"),
}


@pytest.mark.parametrize("name", [*BACKGROUND, *MAIN])
def test_the_background_requests_of_a_client_have_their_own_route(name: str) -> None:
    request = BACKGROUND.get(name) or MAIN[name]

    async def scene() -> None:
        routes = special('client = "claude-code", background = true', 'match = ["claude-*", "m"]\n')
        async with served(routes + USUAL) as (_, gateway):
            got = await send(gateway, ANTHROPIC, request, **CLAUDE)
            target, reason = await why(gateway, got)
            assert target == ("special" if name in BACKGROUND else "usual")
            if target == "special":
                assert reason.endswith(" when client claude-code, background")
            assert (await why(gateway, await send(gateway, ANTHROPIC, request)))[0] == "usual"

    asyncio.run(scene())


def test_the_title_request_of_opencode_is_in_the_background() -> None:
    titled = asked()
    prompt = Message("system", (Text("You are a title generator. You output ONLY a thread title."),))
    titled = msgspec.structs.replace(titled, messages=(prompt, *titled.messages))
    opencode = {"user_agent": "opencode/1.0", "x_session_affinity": "ses_1"}

    async def scene() -> None:
        async with served(special("background = true") + USUAL) as (_, gateway):
            assert (await why(gateway, await send(gateway, CHAT, titled, **opencode)))[0] == "special"
            assert (await why(gateway, await send(gateway, CHAT, asked(), **opencode)))[0] == "usual"

    asyncio.run(scene())


def test_the_first_route_that_matches_wins() -> None:
    routes = special("images = true", 'match = "claude-*"\n') + special("thinking = true") + USUAL

    async def scene() -> None:
        async with served(routes) as (_, gateway):
            both = {"reasoning": Reasoning(enabled=True, effort="high")}
            got = await send(gateway, CHAT, asked(IMAGE, model="claude-x", **both))
            assert (await why(gateway, got))[1] == 'route "claude-*" when images'
            got = await send(gateway, CHAT, asked(IMAGE, model="gpt-x", **both))
            assert (await why(gateway, got))[1] == 'route "*" when thinking'

    asyncio.run(scene())


def test_a_name_of_its_own_comes_before_conditions() -> None:
    """An alias, or `upstream/model`, says which target the user wants."""

    async def scene() -> None:
        async with served(special("images = true") + USUAL, '[aliases]\nmine = "small/demo"\n') as (
            _,
            gateway,
        ):
            assert (await why(gateway, await send(gateway, CHAT, asked(IMAGE, model="mine"))))[0] == "small"
            got = await send(gateway, CHAT, asked(IMAGE, model="usual/demo"))
            assert (await why(gateway, got))[0] == "usual"

    asyncio.run(scene())


def test_tiers_come_after_conditions_and_before_the_last_route() -> None:
    async def scene() -> None:
        tiers = '[tiers]\nsmall = "small/demo"\n'
        async with served(special("images = true") + USUAL, tiers) as (_, gateway):
            small = asked(model="claude-haiku-4-5")
            assert (await why(gateway, await send(gateway, CHAT, small)))[0] == "small"
            shown = asked(IMAGE, model="claude-haiku-4-5")
            assert (await why(gateway, await send(gateway, CHAT, shown)))[0] == "special"

    asyncio.run(scene())


def test_without_other_routes_other_requests_use_the_default_route() -> None:
    async def scene() -> None:
        async with served(special("images = true")) as (_, gateway):
            got = await send(gateway, CHAT, asked(model="demo"))
            assert (await why(gateway, got))[0] == "usual"
            assert (await why(gateway, await send(gateway, CHAT, asked(IMAGE))))[0] == "special"

    asyncio.run(scene())


def test_tokens_are_counted_where_the_request_would_go() -> None:
    """The count goes to the route of the same request, so the estimate is of the same model."""
    upstream = ScriptedUpstream(pace=1)
    named = special("images = true").replace("/demo", "/special-model")

    async def scene() -> None:
        async with upstream, running(upstreams(upstream.url, ANTHROPIC) + named + USUAL) as gateway:
            source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
            content = [{"type": "image", "source": source}]
            body = {"model": "m", "messages": [{"role": "user", "content": content}]}
            path = "/v1/messages/count_tokens"
            got = await post(gateway, ANTHROPIC, path, json.dumps(body).encode(), stream=False)
            assert got.status == 200
            assert upstream.last.json["model"] == "special-model"

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ("images = true", "images = true", True),
        ("images = true", "images = false", False),
        ("", "images = true", True),
        ("images = true", "", False),
    ],
)
def test_an_unreachable_route_is_reported(first: str, second: str, told: bool) -> None:
    routes = [special(when) if when else USUAL for when in (first, second)]
    config = loads(upstreams("http://127.0.0.1:9", CHAT) + "".join(routes), env={})
    assert bool(config.warnings) is told


@pytest.mark.parametrize("name", WHEN)
def test_the_list_of_routes_names_every_condition(name: str) -> None:
    values: dict[str, Any] = {"client": "codex", "tools": ("Bash",), "tokens_over": 5}
    assert described(WhenConfig(**{name: values.get(name, True)}))
