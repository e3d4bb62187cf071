"""Forced calls, as each kind of server takes them: the client's own, and those of `invalid = "reask"`."""

import asyncio
from typing import Any

import pytest
from gateway_harness import Gateway, Got, running, send
from support.scripted_talk import question
from support.scripted_upstream import ScriptedUpstream
from support.wires import ANTHROPIC, CHAT, PROTOCOLS

from dragoman.model.messages import Settings, Tool, ToolChoice

OTHER = Tool(name="other", description="Does something else", parameters={"type": "object", "properties": {}})
CLIENTS = pytest.mark.parametrize("client", PROTOCOLS)
REASK = '[tools]\ninvalid = "reask"\n'


def config(url: str, provider: str, more: str = "") -> str:
    return (
        f'{more}[upstreams.up]\nprotocol = "{CHAT}"\nprovider = "{provider}"\n'
        f'base_url = "{url}/v1"\ncredential = "none"\n'
    )


async def notices(gateway: Gateway, got: Got) -> dict[str, str]:
    id = got.headers["x-dragoman-exchange"]
    async with gateway.session.get(f"{gateway.url}/exchanges/{id}") as response:
        return {notice["rule"]: notice["message"] for notice in (await response.json())["notices"]}


def forced(provider: str, client: str) -> tuple[dict[str, Any], dict[str, str]]:
    """What the server gets of a request that names one of two tools, and what the receipt says."""

    async def scene() -> tuple[dict[str, Any], dict[str, str]]:
        served = ScriptedUpstream()
        async with served, running(config(served.url, provider)) as gateway:
            asked = question("up/demo", stream=True)
            name = asked.tools[0].name
            choice = Settings(max_tokens=900, tool_choice=ToolChoice("named", name))
            got = await send(gateway, client, asked.changed(tools=(*asked.tools, OTHER), settings=choice))
            assert got.status == 200
            return served.last.json, await notices(gateway, got)

    return asyncio.run(scene())


@CLIENTS
def test_a_server_that_ignores_the_name_gets_only_the_tool(client: str) -> None:
    sent, said = forced("llamacpp", client)
    assert sent["tool_choice"] == "required"
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["get_weather"]
    assert "get_weather" in said["named-choice-emulated"]


@CLIENTS
def test_any_other_server_gets_the_name(client: str) -> None:
    sent, said = forced("vllm", client)
    assert sent["tool_choice"] == {"type": "function", "function": {"name": "get_weather"}}
    assert "other" in [tool["function"]["name"] for tool in sent["tools"]]
    assert "named-choice-emulated" not in said


@pytest.mark.parametrize(
    ("provider", "choice", "strict"),
    [
        ("vllm", {"type": "function", "function": {"name": "get_weather"}}, True),
        ("sglang", {"type": "function", "function": {"name": "get_weather"}}, True),
        ("llamacpp", "required", True),
        ("groq", {"type": "function", "function": {"name": "get_weather"}}, None),
    ],
)
def test_the_second_question_forces_the_call(provider: str, choice: Any, strict: bool | None) -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with served, running(config(served.url, provider, REASK)) as gateway:
            got = await send(gateway, ANTHROPIC, question("up/demo-invalid", stream=True))
            first, second = [seen.json for seen in served.seen]
            assert "tool_choice" not in first
            assert second["tool_choice"] == choice
            assert second["tools"][0]["function"].get("strict") is strict
            assert [call["name"] for call in got.said["tool_calls"]] == ["get_weather"]
            said = (await notices(gateway, got))["asked-again"]
            assert "forced by tool_choice" in said
            assert ("decoded by its schema" in said) is (strict is True)

    asyncio.run(scene())
