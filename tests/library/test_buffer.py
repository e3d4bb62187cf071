"""`ToolCallBuffer`: the calls are the same for bytes, dicts and SDK objects, streamed or whole."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.exchanges import sliced
from support.sample_streams import SAMPLES, TOOLS
from support.scripted_server import ScriptedServer, scripted_server
from support.sdk_clients import ask, client
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS

from dragoman.conform import corpus
from dragoman.conform.compare import same_value
from dragoman.conform.shape import Json
from dragoman.library.buffer import ToolCallBuffer
from dragoman.library.calls import CompleteCall, FailedCall, PartialCall
from dragoman.library.declared_tools import declared
from dragoman.library.signatures import local_tool
from dragoman.model.errors import DragomanError
from dragoman.model.events import Stop
from dragoman.model.messages import Tool

# The SDKs raise an error event, so their users never see the rest of the stream.
_KINDS = [
    (protocol, kind) for protocol in PROTOCOLS for kind in SAMPLES[protocol] if not kind.startswith("error")
]
_CALLING = [
    (protocol, kind)
    for protocol in PROTOCOLS
    for kind in ("parallel", "values", "thinking_tool", "interleaved", "max_tokens_tool", "error_tool")
    if kind in SAMPLES[protocol]
]


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running


def read(items: Any, **options: Any) -> ToolCallBuffer:
    buffer = ToolCallBuffer(TOOLS, **options)
    for _ in buffer.read(items):
        pass
    return buffer


def view(buffer: ToolCallBuffer) -> tuple[Any, ...]:
    """The state of a buffer, without the spelling of JSON that was an object in between."""
    calls = [
        (type(c), c.id, c.given_id, c.name, c.arguments, c.mended, c.problems, c.kind) for c in buffer.calls
    ]
    return calls, buffer.text, buffer.stop, buffer.usage, buffer.failure


def from_sdk(server: ScriptedServer, protocol: str, body: bytes, *, stream: bool) -> list[Any]:
    server.script(body)
    sdk = client(protocol, server.url)
    try:
        answer = ask(protocol, sdk, stream=stream)
        return list(answer) if stream else [answer]
    finally:
        sdk.close()


# The same answer as objects, dicts and bytes.


@pytest.mark.parametrize(("protocol", "kind"), _KINDS)
def test_a_stream_reads_the_same_in_every_form(server: ScriptedServer, protocol: str, kind: str) -> None:
    stream = SAMPLES[protocol][kind].stream
    objects = from_sdk(server, protocol, stream, stream=True)
    want = view(read([stream]))
    assert view(read(objects)) == want
    assert view(read([event.model_dump() for event in objects])) == want
    assert (
        view(read([event.model_dump(by_alias=True, mode="json", exclude_none=True) for event in objects]))
        == want
    )


@pytest.mark.parametrize(("protocol", "kind"), [(p, k) for p, k in _KINDS if SAMPLES[p][k].whole])
def test_a_whole_response_reads_the_same_in_every_form(
    server: ScriptedServer, protocol: str, kind: str
) -> None:
    whole = SAMPLES[protocol][kind].whole
    assert whole is not None
    (response,) = from_sdk(server, protocol, whole, stream=False)
    want = view(read([whole]))
    assert view(read([response])) == want
    assert view(read([response.model_dump()])) == want
    assert view(read([json.loads(whole)])) == want


@pytest.mark.parametrize(
    ("protocol", "kind"), [(p, k) for p, k in _KINDS if p != GEMINI and SAMPLES[p][k].whole]
)
def test_a_whole_response_needs_no_close(protocol: str, kind: str) -> None:
    buffer = ToolCallBuffer(TOOLS)
    buffer.feed(json.loads(SAMPLES[protocol][kind].whole or b""))
    assert buffer.over


@pytest.mark.parametrize("kind", ["tool", "parallel", "thinking_tool"])
def test_the_events_of_the_stream_helpers_are_understood(server: ScriptedServer, kind: str) -> None:
    """They add events to those of the wire."""
    asked: Json = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    for protocol, begin in {
        ANTHROPIC: lambda sdk: sdk.messages.stream(max_tokens=10, **asked),
        CHAT: lambda sdk: sdk.chat.completions.stream(**asked),
    }.items():
        stream = SAMPLES[protocol][kind].stream
        server.script(stream)
        with client(protocol, server.url) as sdk, begin(sdk) as helper:
            assert view(read(helper)) == view(read([stream]))


@pytest.mark.parametrize(("protocol", "kind"), _CALLING)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_bytes_may_be_cut_anywhere(protocol: str, kind: str, data: st.DataObject) -> None:
    stream = SAMPLES[protocol][kind].stream
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=12)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    mode: Literal["live", "whole"] = data.draw(st.sampled_from(["live", "whole"]))
    assert view(read(pieces, mode=mode)) == view(read([stream]))


@pytest.mark.parametrize("mode", ["live", "whole"])
@pytest.mark.parametrize("case", corpus.cases(), ids=lambda case: case["id"])
def test_every_recorded_failure_gives_the_calls_it_should(case: Json, mode: Literal["live", "whole"]) -> None:
    expect = case["expect"]
    chunks = corpus.upstream_chunks(case)
    for pieces in (chunks, sliced(b"".join(chunks), 1)):
        buffer = ToolCallBuffer(case["request_tools"], mode=mode)
        given = list(buffer.read(pieces))
        got = [
            {"name": c.name, "arguments": c.arguments} for c in buffer.calls if isinstance(c, CompleteCall)
        ]
        if expect.get("args_extra_ok"):
            for call, want in zip(got, expect["tool_calls"], strict=True):
                call["arguments"] = {k: v for k, v in call["arguments"].items() if k in want["arguments"]}
        want = [{"name": c["name"], "arguments": c["arguments"]} for c in expect["tool_calls"]]
        if expect.get("order") == "any":
            got, want = (sorted(calls, key=json.dumps) for calls in (got, want))
        assert same_value(got, want)
        assert all(c.id for c in given)
        if case["expect"].get("stop") == "error":
            assert buffer.failure is not None


@pytest.mark.parametrize(("protocol", "kind"), _CALLING)
def test_growing_calls_become_the_complete_calls(protocol: str, kind: str) -> None:
    buffer = ToolCallBuffer(TOOLS)
    seen: dict[str, list[PartialCall]] = {}
    for call in buffer.read(sliced(SAMPLES[protocol][kind].stream, 1)):
        if isinstance(call, PartialCall):
            seen.setdefault(call.id, []).append(call)
        elif isinstance(call, CompleteCall):
            last = seen[call.id][-1]
            assert "".join(part.delta for part in seen[call.id]) == last.text == call.text
            assert json.loads(call.text) == call.arguments
            # An earlier snapshot is unchanged.
            assert call.text.startswith(seen[call.id][0].text)
            assert len(seen[call.id][0].text) <= len(call.text)


# Endings.


def chat(*deltas: Json, finish: str | None = None) -> list[Json]:
    events = [
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]} for delta in deltas
    ]
    return [*events, {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}] if finish else events


def fragment(index: int, arguments: str, id: str | None = None, name: str | None = None) -> Json:
    return {"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]}


@pytest.mark.parametrize(("protocol", "kind"), _CALLING)
def test_a_cut_stream_leaves_no_call_that_looks_complete(protocol: str, kind: str) -> None:
    sample = SAMPLES[protocol][kind]
    whole = [call.arguments for call in read([sample.stream]).calls]
    for end in range(0, len(sample.stream), 7):
        buffer = read([sample.stream[:end]])
        for call in buffer.calls:
            assert isinstance(call, FailedCall) or call.arguments in whole
        if buffer.stop is None:
            assert buffer.failure is not None


def test_a_call_cut_before_its_first_argument_keeps_its_id() -> None:
    buffer = read(chat(fragment(0, "", "call_a", "read_file")))
    (call,) = buffer.calls
    assert isinstance(call, FailedCall)
    assert (call.id, call.name, call.reason, call.raw) == ("call_a", "read_file", "cut", "")


def test_ids_are_the_providers_own_even_where_they_look_like_ours() -> None:
    deltas = [
        fragment(0, '{"path": "a"}', "functions.read_file:0", "read_file"),
        fragment(1, '{"path": "b"}', "dgm-x", "read_file"),
        fragment(2, '{"path": "c"}', "dgm-x-2", "read_file"),
        fragment(3, '{"path": "d"}', "", "read_file"),
    ]
    calls = read(chat(*deltas, finish="tool_calls")).calls
    assert [call.given_id for call in calls] == ["functions.read_file:0", "dgm-x", "dgm-x-2", ""]
    assert [call.id for call in calls][:3] == ["functions.read_file:0", "dgm-x", "dgm-x-2"]
    assert calls[3].id


def test_two_calls_with_one_id_both_keep_it() -> None:
    events: list[Json] = [{"type": "message_start", "message": {}}]
    for index, path in enumerate("ab"):
        block = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": path}}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_stop", "index": index})
    buffer = ToolCallBuffer(TOOLS)
    given = [call for event in events for call in buffer.feed(event)]
    assert {call.id for call in given} == {"toolu_1"}
    assert [call.arguments for call in buffer.calls] == [{"path": "a"}, {"path": "b"}]


def test_equal_calls_are_kept_and_a_repeated_call_is_dropped() -> None:
    def ids(*given: str) -> list[str]:
        deltas = [fragment(n, '{"path": "a"}', id, "read_file") for n, id in enumerate(given)]
        calls = read(chat(*deltas, finish="tool_calls")).calls
        assert all(isinstance(call, CompleteCall) for call in calls)
        return [call.id for call in calls]

    assert ids("a", "b") == ["a", "b"]
    assert ids("a", "a") == ["a"]


def test_a_call_written_as_text_too_is_complete_once_and_still_answerable() -> None:
    text = {"content": '<tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call>'}
    call = fragment(0, '{"path": "a"}', "call_1", "read_file")
    first, second = read(chat(text, call, finish="tool_calls")).calls
    assert isinstance(first, CompleteCall)
    assert isinstance(second, FailedCall)
    assert (second.id, second.reason) == ("call_1", "duplicate")


def test_problems_of_a_call_are_reported() -> None:
    deltas = [
        fragment(0, '{"path": {}}', "a", "read_file"),
        fragment(1, '{"limit": 3}', "b", "read_file"),
        fragment(2, "{}", "c", "no_such_tool"),
    ]
    calls = read(chat(*deltas, finish="tool_calls")).calls
    missing, unknown = calls[1], calls[2]
    assert isinstance(missing, CompleteCall)
    assert isinstance(unknown, CompleteCall)
    assert (missing.valid, unknown.valid) == (False, False)
    assert "path" in missing.problems[0]
    assert "no_such_tool" in unknown.problems[0]
    # Without declared tools no call is checked.
    (free,) = [*ToolCallBuffer().read(chat(fragment(0, "{}", "c", "any"), finish="tool_calls"))][-1:]
    assert isinstance(free, CompleteCall)
    assert free.valid


def test_a_rule_can_be_switched_off() -> None:
    given = chat(fragment(0, '{"path": "a", "limit": "3"}', "a", "read_file"), finish="tool_calls")
    (mended,) = read(given).calls
    assert mended.arguments == {"path": "a", "limit": 3}
    (fix,) = mended.mended
    (left,) = read(given, rules_off=[fix.rule]).calls
    assert left.problems
    with pytest.raises(DragomanError, match="no-such-rule"):
        ToolCallBuffer(rules_off=["no-such-rule"])


def test_a_surrogate_pair_split_over_two_events_is_joined() -> None:
    given = chat(
        fragment(0, '{"path": "\ud83d', "a", "read_file"), fragment(0, '\ude00"}'), finish="tool_calls"
    )
    (call,) = read(given).calls
    assert call.arguments == {"path": "😀"}


def test_an_error_body_of_any_server_is_a_failure() -> None:
    for body in (
        b'{"error": {"message": "Overloaded"}}',
        b'{"type": "error", "error": {"message": "Overloaded"}}',
    ):
        buffer = read([body])
        assert buffer.failure is not None
        assert buffer.failure.message == "Overloaded"
        assert (buffer.stop, buffer.over) == (None, True)


def test_an_empty_answer_is_a_failure() -> None:
    assert read([]).failure is not None


def test_a_value_that_is_no_event_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot read a int"):
        ToolCallBuffer().feed(3)


def test_the_stop_reason_matches_the_calls() -> None:
    assert read(chat(fragment(0, '{"path": "a"}', "a", "read_file"), finish="stop")).stop is Stop.TOOL


# Tools in every form.

_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "read", "description": "d", "input_schema": _SCHEMA},
        {"type": "custom", "name": "read", "description": "d", "input_schema": _SCHEMA},
        {"type": "function", "function": {"name": "read", "description": "d", "parameters": _SCHEMA}},
        {"type": "function", "name": "read", "description": "d", "parameters": _SCHEMA},
        {"name": "read", "description": "d", "parameters": _SCHEMA},
        {"name": "read", "description": "d", "parameters_json_schema": _SCHEMA},
        {"function_declarations": [{"name": "read", "description": "d", "parametersJsonSchema": _SCHEMA}]},
        Tool(name="read", description="d", parameters=_SCHEMA),
    ],
)
def test_a_tool_is_accepted_in_every_form(tool: Any) -> None:
    (known,) = declared([tool])
    assert (known.name, known.description, known.schema) == ("read", "d", _SCHEMA)


def test_tools_of_sdks_and_providers_are_accepted() -> None:
    from google.genai import types

    function = types.FunctionDeclaration(name="read", parameters=types.Schema(type="OBJECT"))
    known = declared(
        [
            types.Tool(function_declarations=[function]),
            {"type": "bash_20250124", "name": "bash"},
            {"type": "web_search_20250305", "name": "web_search"},
            {"type": "custom", "custom": {"name": "patch"}},
            {"type": "custom", "name": "patch2"},
            {"type": "web_search"},
            {"google_search": {}},
        ]
    )
    assert [(tool.name, tool.kind) for tool in known] == [
        ("read", "function"),
        ("bash", "function"),
        ("web_search", "hosted"),
        ("patch", "custom"),
        ("patch2", "custom"),
        ("web_search", "hosted"),
        ("web_search", "hosted"),
    ]
    with pytest.raises(TypeError, match="is not a tool"):
        declared([3])


# Python callables.


@dataclass
class Point:
    x: int
    y: int = 0


class Note(TypedDict):
    title: str


class Tag(msgspec.Struct):
    name: str


def everything(
    path: str,
    at: Point,
    notes: list[Note],
    mode: Literal["r", "w"] = "r",
    limit: int | None = None,
    tags: dict[str, Tag] = {},  # noqa: B006 - what people write
    *,
    deep: bool = False,
) -> tuple[Any, ...]:
    """Try everything.

    It takes two lines to say.

    Args:
        path: where to look
        limit (int): how much
            at most
    Returns:
        all of it
    """
    return path, at, notes, mode, limit, tags, deep


def test_a_signature_becomes_a_schema() -> None:
    tool = local_tool(everything)
    assert tool.tool.description == "Try everything.\n\nIt takes two lines to say."
    schema = tool.tool.schema or {}
    assert schema["required"] == ["path", "at", "notes"]
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert properties["path"] == {"type": "string", "description": "where to look"}
    assert properties["mode"] == {"enum": ["r", "w"], "default": "r"}
    assert properties["limit"]["description"].startswith("how much")
    assert properties["limit"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert properties["deep"] == {"type": "boolean", "default": False}
    assert sorted(schema["$defs"]) == ["Note", "Point", "Tag"]


def test_arguments_are_converted_to_their_annotations() -> None:
    bound = local_tool(everything).bind(
        {"path": "a", "at": {"x": 1}, "notes": [{"title": "t"}], "tags": {"k": {"name": "n"}}, "deep": True}
    )
    assert everything(*bound.args, **bound.kwargs) == (
        "a", Point(1), [{"title": "t"}], "r", None, {"k": Tag("n")}, True
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"\$\.at"):
        local_tool(everything).bind({"path": "a", "at": 3, "notes": []})


def test_every_kind_of_callable_is_accepted() -> None:
    from functools import partial
    from pathlib import Path

    import pydantic

    class Inner(pydantic.BaseModel):
        n: int

    class Outer(pydantic.BaseModel):
        inner: Inner

    class Reader:
        def __call__(self, path: str) -> str:
            return path

        def method(self, n: int, /) -> int:
            return n

    def take(path: Path, model: Outer) -> tuple[Path, Outer]:
        return path, model

    assert local_tool(Reader(), name="reader").bind({"path": "a"}).args == ("a",)
    assert local_tool(Reader().method).bind({"n": 3}).args == (3,)
    assert (
        "path" not in (local_tool(partial(everything, "here"), name="rest").tool.schema or {})["properties"]
    )
    tool = local_tool(take)
    assert "Inner" in (tool.tool.schema or {})["$defs"]
    assert tool.bind({"path": "a/b", "model": {"inner": {"n": 1}}}).args == (
        Path("a/b"),
        Outer(inner=Inner(n=1)),
    )
    with pytest.raises(ValueError, match="n"):
        tool.bind({"path": "a/b", "model": {"inner": {"n": "no"}}})

    def anything(*args: str) -> None: ...

    with pytest.raises(TypeError, match=r"\*args"):
        local_tool(anything)
