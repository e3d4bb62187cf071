"""Between Responses servers and clients nothing is lost: items keep their structure, frames their members.

The cases follow OpenAI's documentation of the streaming events.
"""

import json
from typing import Any

import pytest
from support.exchanges import exchange, run, sliced
from support.sample_streams import CUSTOM_TOOL, SAMPLES, TOOLS
from support.wires import RESPONSES

from dragoman.conform import laws

Obj = dict[str, Any]
OFFERED = [*TOOLS, {"name": CUSTOM_TOOL, "kind": "custom"}]
SIZES = pytest.mark.parametrize("size", [1, 50, 1 << 20])
HEAD: Obj = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1741476777.0,
    "model": "gpt-5",
    "service_tier": "priority",
    "prompt_cache_retention": "24h",
    "tools": [{"type": "tool_search", "execution": "server"}],
    "temperature": None,
    "moderation": {"input": [{"flagged": False}]},
}
USAGE: Obj = {
    "input_tokens": 81,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 1035,
    "output_tokens_details": {"reasoning_tokens": 832, "accepted_prediction_tokens": 3},
    "total_tokens": 1116,
    "cost": 0.25,
}
LOGPROBS = [{"token": "Hi", "logprob": -0.25, "bytes": [72, 105], "top_logprobs": []}]


def response(status: str, output: list[Obj], **members: Any) -> Obj:
    return {**HEAD, "status": status, "output": output, **members}


def stream(items: list[list[Obj]], *, status: str = "completed", **members: Any) -> list[Obj]:
    """An answer with the events of these items, and the final response that repeats them."""
    output = [events[-1]["item"] for events in items]
    final = response(status, output, error=None, incomplete_details=None, usage=USAGE) | members
    events = [
        {"type": "response.created", "response": response("in_progress", [])},
        {"type": "response.in_progress", "response": response("in_progress", [], usage=None)},
        *(event for number, inner in enumerate(items) for event in numbered(inner, number)),
        {"type": f"response.{status}", "response": final},
    ]
    return [event | {"sequence_number": number} for number, event in enumerate(events)]


def numbered(events: list[Obj], index: int) -> list[Obj]:
    """The events of an item, with the item's index, and its id where events have one."""
    id = events[0]["item"]["id"]
    return [{"output_index": index, **({} if "item" in e else {"item_id": id}), **e} for e in events]


def item(value: Obj, *inner: Obj, **begun: Any) -> list[Obj]:
    """The events of an item. `begun` are the members that differ when it is added."""
    return [
        {"type": "response.output_item.added", "item": {**value, **begun}},
        *inner,
        {"type": "response.output_item.done", "item": value},
    ]


def text_part(index: int, text: str, *pieces: str, notes: list[Obj] | None = None) -> list[Obj]:
    part = {"type": "output_text", "annotations": notes or [], "logprobs": LOGPROBS, "text": text}
    empty = {**part, "annotations": [], "logprobs": [], "text": ""}
    place = {"content_index": index}
    deltas = [
        {
            "type": "response.output_text.delta",
            **place,
            "delta": p,
            "logprobs": LOGPROBS,
            "obfuscation": p * 2,
        }
        for p in pieces
    ]
    return [
        {"type": "response.content_part.added", **place, "part": empty},
        *deltas,
        *(
            {
                "type": "response.output_text.annotation.added",
                **place,
                "annotation_index": at,
                "annotation": note,
            }
            for at, note in enumerate(notes or [])
        ),
        {"type": "response.output_text.done", **place, "text": text, "logprobs": LOGPROBS},
        {"type": "response.content_part.done", **place, "part": part},
    ]


def message(id: str, *parts: list[Obj], **members: Any) -> list[Obj]:
    content = [part[-1]["part"] for part in parts]
    value = {"id": id, "type": "message", "status": "completed", "role": "assistant", "content": content}
    inner = [event for part in parts for event in part]
    return item(value | members, *inner, status="in_progress", content=[])


def summary(index: int, text: str) -> list[Obj]:
    part, place = {"type": "summary_text", "text": text}, {"summary_index": index}
    name = "response.reasoning_summary"
    return [
        {"type": f"{name}_part.added", **place, "part": {**part, "text": ""}},
        {"type": f"{name}_text.delta", **place, "delta": text, "obfuscation": "xx"},
        {"type": f"{name}_text.done", **place, "text": text},
        {"type": f"{name}_part.done", **place, "part": part},
    ]


def raw_reasoning(text: str, *, parts: bool = True) -> list[Obj]:
    part, place = {"type": "reasoning_text", "text": text}, {"content_index": 0}
    inner = [
        {"type": "response.reasoning_text.delta", **place, "delta": text},
        {"type": "response.reasoning_text.done", **place, "text": text},
    ]
    if not parts:
        return inner
    added = {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    return [added, *inner, {"type": "response.content_part.done", **place, "part": part}]


def reasoning(id: str, *inner: list[Obj], **members: Any) -> list[Obj]:
    texts = [event for part in inner for event in part if event["type"].endswith("_text.done")]
    found: dict[str, list[Obj]] = {"summary": [], "content": []}
    for event in texts:
        name = "content" if "content_index" in event else "summary"
        kind = "reasoning_text" if name == "content" else "summary_text"
        found[name].append({"type": kind, "text": event["text"]})
    value: Obj = {"id": id, "type": "reasoning", "summary": found["summary"]}
    begun: Obj = {"summary": []}
    if found["content"]:
        value["content"], begun["content"] = found["content"], []
    return item(value | members, *(event for part in inner for event in part), **begun)


def call(id: str, arguments: str, **members: Any) -> list[Obj]:
    value = {"id": id, "type": "function_call", "status": "completed", "arguments": arguments}
    value |= {"call_id": f"call_{id}", "name": "list_sessions", **members}
    name = "response.function_call_arguments"
    return item(
        value,
        {"type": f"{name}.delta", "delta": arguments, "obfuscation": "yy"},
        {"type": f"{name}.done", "arguments": arguments, "name": "list_sessions"},
        status="in_progress",
        arguments="",
    )


NOTE = {"type": "url_citation", "start_index": 0, "end_index": 2, "url": "https://a.example", "title": "A"}
FILE = {"type": "file_citation", "index": 2, "file_id": "file-1", "filename": "a.pdf"}
FOUND = {"type": "search", "query": "q", "sources": [{"type": "url", "url": "https://a.example"}]}
SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": FOUND}
TOOL_SEARCH = {
    "id": "tsc_1",
    "type": "tool_search_call",
    "execution": "server",
    "call_id": None,
    "status": "completed",
    "arguments": {"paths": ["crm"]},
}
IMAGE = {
    "id": "ig_1",
    "type": "image_generation_call",
    "status": "completed",
    "result": "aGk=",
    "size": "1x1",
}
MCP = {
    "id": "mcp_1",
    "type": "mcp_call",
    "server_label": "docs",
    "name": "find",
    "arguments": '{"q":"x"}',
    "output": "found",
    "error": None,
    "approval_request_id": None,
}
PROGRAM = {"id": "prog_1", "type": "program", "code": "await tools.a()", "fingerprint": "f"}

ITEMS: dict[str, list[Obj]] = {
    "text": message("msg_1", text_part(0, "Hi.", "H", "i."), phase="final_answer"),
    "several parts": message("msg_1", text_part(0, "One", "One"), text_part(1, "Two", "T", "wo")),
    "citations": message("msg_1", text_part(0, "So.", "So.", notes=[NOTE, FILE])),
    "no part": message("msg_1", phase="commentary"),
    "a part of a new type": message(
        "msg_1",
        text_part(0, "One", "One"),
        [
            {
                "type": "response.content_part.added",
                "content_index": 1,
                "part": {"type": "card", "of": {"a": 1}},
            },
            {
                "type": "response.content_part.done",
                "content_index": 1,
                "part": {"type": "card", "of": {"a": 2}},
            },
        ],
        text_part(2, "Two", "Two"),
    ),
    "a part of a new type first": message(
        "msg_1",
        [
            {"type": "response.content_part.added", "content_index": 0, "part": {"type": "card"}},
            {"type": "response.content_part.done", "content_index": 0, "part": {"type": "card", "of": 1}},
        ],
        text_part(1, "Two", "Two"),
    ),
    "hidden reasoning": reasoning("rs_1", encrypted_content="gAAA", status=None),
    "reasoning of an id alone": reasoning("rs_1"),
    "a summary": reasoning("rs_1", summary(0, "One."), summary(1, "Two."), encrypted_content="gAAA"),
    "raw reasoning": reasoning("rs_1", raw_reasoning("One."), encrypted_content=None),
    "raw reasoning without parts": reasoning("rs_1", raw_reasoning("One.", parts=False)),
    "a summary and raw reasoning": reasoning("rs_1", summary(0, "One."), raw_reasoning("Two.")),
    "raw reasoning and a summary": reasoning(
        "rs_1", raw_reasoning("Two."), summary(0, "One."), summary(1, "X")
    ),
    "a call in a namespace": call("fc_1", '{"a": 1}', namespace="crm", caller={"type": "program", "id": "p"}),
    "a web search": item(
        SEARCH,
        {"type": "response.web_search_call.in_progress"},
        {"type": "response.web_search_call.searching", "detail": {"x": 1}},
        {"type": "response.web_search_call.completed"},
        status="in_progress",
        action={"type": "search"},
    ),
    "a tool search": item(TOOL_SEARCH, status="in_progress", arguments={}),
    "tools that were found": item(
        {"id": "tso_1", "type": "tool_search_output", "tools": [{"type": "function"}]}
    ),
    "an image": item(
        IMAGE,
        {"type": "response.image_generation_call.generating"},
        {
            "type": "response.image_generation_call.partial_image",
            "partial_image_index": 0,
            "partial_image_b64": "aGk=",
        },
        status="in_progress",
        result=None,
    ),
    "a call of an MCP server": item(
        MCP,
        {"type": "response.mcp_call.in_progress"},
        {"type": "response.mcp_call_arguments.delta", "delta": '{"q":"x"}', "obfuscation": ""},
        {"type": "response.mcp_call_arguments.done", "arguments": '{"q":"x"}'},
        {"type": "response.mcp_call.completed"},
        arguments="",
        output=None,
    ),
    "a program": item(PROGRAM, {"type": "response.program.delta", "delta": "await"}, code=""),
}
ALL = list(ITEMS.values())


def encoded(events: list[Obj]) -> bytes:
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def decoded(data: bytes) -> list[Obj]:
    return [json.loads(frame.partition(b"data: ")[2]) for frame in data.split(b"\n\n") if frame]


def told(events: list[Obj], size: int = 1 << 20, tools: list[Obj] | None = None, **options: Any) -> list[Obj]:
    """The client's events. Asserts that they keep the laws."""
    it = exchange(RESPONSES, RESPONSES, OFFERED if tools is None else tools, **options)
    got = run(it, sliced(encoded(events), size))
    assert it.failure is None
    assert laws.check(RESPONSES, got, stream=True) == []
    return decoded(got)


def joined(events: list[Obj]) -> list[Obj]:
    """The events with the fragments of each call's arguments in one delta: Dragoman cuts them at members."""
    found: list[Obj] = []
    for event in events:
        event = {name: value for name, value in event.items() if name != "sequence_number"}
        if found and event["type"] == found[-1]["type"] == "response.function_call_arguments.delta":
            found[-1] |= event | {"delta": found[-1]["delta"] + event["delta"]}
        else:
            found.append(event)
    return found


@SIZES
@pytest.mark.parametrize("name", ITEMS)
def test_an_item_passes_as_it_is(name: str, size: int) -> None:
    events = stream([ITEMS[name]])
    assert told(events, size) == events


@pytest.mark.parametrize("mode", ["live", "whole"])
@pytest.mark.parametrize("name", ITEMS)
def test_an_item_passes_between_others(name: str, mode: str) -> None:
    others = [call("fc_8", '{"x": 1}'), message("msg_9", text_part(0, "End.", "End."))]
    events = stream([reasoning("rs_9", encrypted_content="e"), ITEMS[name], *others])
    assert joined(told(events, mode=mode)) == joined(events)


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_passes_after_a_mended_call(name: str) -> None:
    """Arguments of the wrong type are mended. Everything else is as the upstream sent it."""
    tools = [{"name": "list_sessions", "parameters": {"properties": {"n": {"type": "integer"}}}}]
    wrong, right = call("fc_7", '{"n": "1"}'), call("fc_7", '{"n": 1}')
    got = told(stream([wrong, ITEMS[name]]), tools=tools)
    assert joined(got) == joined(stream([right, ITEMS[name]]))


@pytest.mark.parametrize("name", ITEMS)
def test_a_body_passes_as_it_is(name: str) -> None:
    body = stream([ITEMS[name]])[-1]["response"]
    got = run(exchange(RESPONSES, RESPONSES, OFFERED, stream=False), [json.dumps(body).encode()])
    assert json.loads(got) == body


@pytest.mark.parametrize("name", ITEMS)
def test_a_stream_that_is_collected_is_its_last_response(name: str) -> None:
    events = stream([ITEMS[name]])
    got = run(exchange(RESPONSES, RESPONSES, OFFERED, stream=False), [encoded(events)])
    assert json.loads(got) == events[-1]["response"]


@pytest.mark.parametrize("name", ITEMS)
def test_a_final_response_without_output_gets_the_items(name: str) -> None:
    """The backend of ChatGPT leaves the output out."""
    events = stream([ITEMS[name]])
    bare: list[Obj] = [*events[:-1], {**events[-1], "response": {**events[-1]["response"], "output": []}}]
    assert told(bare) == events


def test_each_kind_of_sample_passes() -> None:
    for kind, sample in SAMPLES[RESPONSES].items():
        if kind in ("interleaved", "error", "error_tool"):
            continue
        got = run(exchange(RESPONSES, RESPONSES, OFFERED), [sample.stream])
        assert joined(decoded(got)) == joined(decoded(sample.stream)), kind
        if sample.whole is not None:
            body = run(exchange(RESPONSES, RESPONSES, OFFERED, stream=False), [sample.whole])
            assert json.loads(body) == json.loads(sample.whole), kind


def test_reasoning_that_was_sealed_only_at_its_start_stays_sealed() -> None:
    done: Obj = {"id": "rs_1", "type": "reasoning", "summary": []}
    got = told(stream([item(done, encrypted_content="gAAA")]))
    assert got[-1]["response"]["output"] == [{**done, "encrypted_content": "gAAA"}]


def test_members_of_items_in_the_final_response_are_its_own() -> None:
    events = stream([message("msg_1", text_part(0, "Hi", "Hi"))])
    final = json.loads(json.dumps(events[-1]))
    final["response"]["output"][0] |= {"only": "here"}
    final["response"]["output"][0]["content"][0] |= {"also": [1]}
    assert told([*events[:-1], final]) == [*events[:-1], final]


LEAK = '<tool_call>{"name": "list_sessions", "arguments": {}}</tool_call>'


def test_the_events_of_an_item_that_moved_name_its_new_place() -> None:
    """The model wrote a call as text, so the client gets one item more."""
    search = ITEMS["a web search"]
    got = told(stream([message("msg_1", text_part(0, f"Hi {LEAK}", f"Hi {LEAK}")), search]))
    kinds = [item["type"] for item in got[-1]["response"]["output"]]
    assert kinds == ["message", "function_call", "web_search_call"]
    assert [event for event in got if event.get("output_index") == 2] == [
        event | {"sequence_number": got.index(moved)}
        for event, moved in zip(numbered(search, 2), got[-1 - len(search) :], strict=False)
    ]


def test_an_unknown_item_goes_out_at_once() -> None:
    it = exchange(RESPONSES, RESPONSES, OFFERED)
    events = stream([ITEMS["a web search"]])
    for event in events:
        assert decoded(it.feed(encoded([event]))) == [event]


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_the_stream_of_a_response_in_the_background(status: str) -> None:
    events = stream([message("msg_1", text_part(0, "Hi", "Hi"))])
    created, running, *rest = events
    created = {**created, "response": {**created["response"], "status": status, "background": True}}
    queued = {"type": "response.queued", "response": {**created["response"], "status": "queued"}}
    whole = [created, *([queued] if status == "queued" else []), running, *rest]
    whole = [event | {"sequence_number": at} for at, event in enumerate(whole)]
    assert told(whole) == whole


@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter", "max_messages", "steered"])
def test_an_incomplete_response_keeps_its_reason(reason: str) -> None:
    cut = message("msg_1", text_part(0, "Hi", "Hi"), status="incomplete")
    details = {"reason": reason, "more": {"x": 1}}
    events = stream([cut], status="incomplete", incomplete_details=details)
    assert told(events) == events


def test_counts_that_do_not_add_up_are_corrected() -> None:
    usage = {"input_tokens": 5, "output_tokens": 2, "total_tokens": 99, "cost": 1}
    events = stream([message("msg_1", text_part(0, "Hi", "Hi"))], usage=usage)
    got = told(events)[-1]["response"]["usage"]
    assert (got["total_tokens"], got["cost"]) == (7, 1)
    assert got["output_tokens_details"] == {"reasoning_tokens": 0}


def test_an_error_keeps_its_members() -> None:
    error = {"type": "error", "code": "server_error", "message": "down", "param": None, "request": "r1"}
    it = exchange(RESPONSES, RESPONSES, OFFERED)
    got = decoded(run(it, [encoded([*stream([])[:2], error | {"sequence_number": 2}])]))
    assert error.items() <= got[-1].items()


def test_other_protocols_get_no_extras() -> None:
    events = stream(ALL)
    for client in ("anthropic", "openai-chat", "gemini"):
        got = run(exchange(RESPONSES, client, OFFERED), [encoded(events)])
        assert b"obfuscation" not in got
        assert b"prompt_cache_retention" not in got
