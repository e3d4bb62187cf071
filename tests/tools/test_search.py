"""Web searches inside one answer are the same for every client, assembly and chunking."""

import json
from typing import Any

import pytest
from support import oracle
from support.exchanges import SEED

from dragoman.conform import laws, neutral
from dragoman.conform.scripted.answer_bytes import ReplyContext, encode_reply
from dragoman.model.messages import (
    Message,
    Part,
    Request,
    Search,
    Source,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)
from dragoman.protocols.base import Target
from dragoman.protocols.common.searches import with_calls
from dragoman.protocols.registry import PROTOCOLS
from dragoman.tools.search import as_function, free_choice, is_expected
from dragoman.translation.translation import Options, Translation

HOSTED = Tool(name="web_search", kind="hosted", hosted="web_search")
WEATHER = Tool(
    name="get_weather",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
ASKED = Request(model="m", messages=(Message("user", (Text("weather?"),)),), tools=(HOSTED, WEATHER))
URL = "https://rome.example/weather"
FOUND = (Source(URL, "Rome", "Sunny."), Source("https://rome.example/weather/more", "More", "Hot."))
SEARCH = ToolCall(id="s1", name="web_search", arguments='{"query": "rome"}')
CALL = ToolCall(id="w1", name="get_weather", arguments='{"city": "Rome"}')


def answer(upstream: str, *parts: Part, stream: bool = True) -> bytes:
    context = ReplyContext(
        protocol=upstream, request=Request(model="m", messages=ASKED.messages, stream=stream)
    )
    return b"".join(step for step in encode_reply(context, parts).steps if isinstance(step, bytes))


def exchange(client: str, upstream: str = "openai-chat", **more: Any) -> tuple[Translation, Request]:
    request, tool = as_function(ASKED)
    options = Options(id=SEED, search=tool.name, **more)
    return Translation(upstream, client, tools=request.tools, options=options), request


def fed(it: Translation, data: bytes, piece: int) -> bytes:
    got = b"".join(it.feed(data[at : at + piece]) for at in range(0, len(data), piece))
    return got + it.close()


def found(it: Translation, *sources: Source) -> list[Search]:
    return [Search(id=call.id, query=call.query, sources=sources) for call in it.searches]


def played(client: str, mode: Any, stream: bool, piece: int) -> bytes:
    it, request = exchange(client, mode=mode, stream=stream)
    got = fed(it, answer("openai-chat", Text("I look."), SEARCH), piece)
    assert [call.query for call in it.searches] == ["rome"]
    assert not it.over
    results = found(it, *FOUND)
    got += it.searched(results)
    it.again(request, results)
    got += fed(it, answer("openai-chat", Text(f"Sunny: {URL}.")), piece)
    assert it.over
    return got


@pytest.mark.parametrize("mode", ["live", "whole"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", PROTOCOLS)
def test_chunking_and_assembly_change_nothing(client: str, stream: bool, mode: str) -> None:
    whole = played(client, mode, stream, 1 << 20)
    assert laws.check(client, whole, stream=stream) == []
    dripped = played(client, mode, stream, 1)
    for said in (neutral.reduce(client, whole, stream=stream), oracle.parse(client, whole, stream=stream)):
        assert said["text"] == f"I look.Sunny: {URL}."
        assert said["tool_calls"] == []
        assert said["stop"] == "end_turn"
    assert neutral.reduce(client, dripped, stream=stream) == neutral.reduce(client, whole, stream=stream)
    assert b"citation" in whole


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_only_pages_that_the_model_names_are_cited(stream: bool) -> None:
    """One of the two addresses is a prefix of the other. A Chat client gets only citations."""
    got = played("openai-chat", "live", stream, 7)
    assert b"url_citation" in got
    assert b"weather/more" not in got


def test_each_search_is_on_the_receipt() -> None:
    it, _ = exchange("anthropic")
    it.feed(answer("openai-chat", SEARCH, CALL))
    it.close()
    assert sorted((r.name, r.dropped) for r in it.receipts) == [
        ("get_weather", None),
        ("web_search", "searched"),
    ]


@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_the_next_request_answers_each_call_once(upstream: str) -> None:
    """Also if the upstream sends no ids, or the same id twice."""
    for id in ("s1", ""):
        it, request = exchange("openai-chat", upstream)
        calls = [
            ToolCall(id=id and f"{id}{n}", name="web_search", arguments='{"query":"rome"}') for n in (1, 2)
        ]
        fed(it, answer(upstream, *calls), 1 << 20)
        results = found(it, *FOUND)
        assert len(results) == 2
        it.searched(results)
        again = it.again(request, results)
        turn, told = again.messages[-2:]
        made = [part.id for part in turn.parts if isinstance(part, ToolCall)]
        assert made == [part.call_id for part in told.parts if isinstance(part, ToolResult)]
        assert len(set(made)) == 2
        body = PROTOCOLS[upstream].write_request(again, Target(model="m")).encoded().decode()
        assert body.count("Sunny.") == 2


def test_a_search_that_the_model_wrote_as_text_is_run() -> None:
    it, _ = exchange("anthropic")
    leaked = '<tool_call>{"name": "web_search", "arguments": {"query": "rome"}}</tool_call>'
    got = fed(it, answer("openai-chat", Text(f"I look. {leaked}")), 3)
    assert [call.query for call in it.searches] == ["rome"]
    assert b"tool_call" not in got


def test_a_search_beside_a_rejected_call_is_reasked() -> None:
    it, request = exchange("anthropic", invalid="reask")
    bad = ToolCall(id="w1", name="get_weather", arguments='{"town": 7}')
    fed(it, answer("openai-chat", SEARCH, bad), 1 << 20)
    assert not it.searches
    assert {item.call.name for item in it.rejected} == {"web_search", "get_weather"}
    again = it.again(request)
    assert sum(isinstance(part, ToolResult) for part in again.messages[-1].parts) == 2
    fed(it, answer("openai-chat", SEARCH), 1 << 20)
    assert [call.query for call in it.searches] == ["rome"]


@pytest.mark.parametrize(
    ("tools", "choice", "expected"),
    [
        ((HOSTED,), None, True),
        ((HOSTED,), ToolChoice("none"), False),
        ((HOSTED, WEATHER), None, False),
        ((HOSTED, WEATHER), ToolChoice("named", "web_search"), True),
        ((HOSTED, WEATHER), ToolChoice("named", "get_weather"), False),
        ((HOSTED, WEATHER), ToolChoice("required"), False),
    ],
)
def test_when_a_search_is_expected(tools: Any, choice: Any, expected: bool) -> None:
    settings = ASKED.settings.__class__(tool_choice=choice)
    request = Request(model="m", messages=ASKED.messages, tools=tools, settings=settings)
    assert is_expected(request) is expected


def test_only_the_first_turn_is_forced() -> None:
    settings = ASKED.settings.__class__(tool_choice=ToolChoice("named", "web_search"))
    request, tool = as_function(Request(model="m", messages=(), tools=(HOSTED,), settings=settings))
    assert request.settings.tool_choice == ToolChoice("named", tool.name)
    assert free_choice(request).settings.tool_choice == ToolChoice("auto")


def test_the_history_has_a_call_and_a_result_for_each_search() -> None:
    search = Search(id="s", query="rome", sources=FOUND)
    other = Search(id="t", query="oslo", error="unavailable")
    turn = Message("assistant", (Text("I look."), search, Text("Again."), other, Text("Sunny.")))
    made = with_calls([Message("user", (Text("?"),)), turn, Message("user", (Text("Sure?"),))])
    assert [message.role for message in made] == ["user", *["assistant", "user"] * 2, "assistant", "user"]
    assert made[4].parts[0].is_error
    assert json.loads(made[3].parts[1].arguments) == {"query": "oslo"}
    mixed = Message("assistant", (CALL, search))
    result = ToolResult(call_id="w1", parts=(Text("Hot"),))
    made = with_calls([mixed, Message("user", (result,))])
    assert [type(part) for part in made[0].parts] == [ToolCall, ToolCall]
    assert [part.call_id for part in made[1].parts] == ["s", "w1"]
