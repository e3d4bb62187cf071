"""A whole answer that needs nothing done takes the short way, which is the same in every respect."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st
from support import answers, mutations
from support.exchanges import exchange, run
from support.fuzzing import fuzz
from support.sample_streams import CUSTOM_TOOL, SAMPLES, TOOLS

from bench.answers import CHAT
from bench.answers import body as benched
from bench.shapes import SHORT, TOOL
from dragoman.conformance import corpus
from dragoman.events import Event, Stop
from dragoman.exchange import Exchange
from dragoman.order import Order
from dragoman.protocols.collected import collect
from dragoman.protocols.plain_answer import never_plain
from dragoman.protocols.registry import PROTOCOLS
from dragoman.tools.leaks import LeakFilter, is_unmarked
from dragoman.tools.thinktags import ThinkSplitter, is_untagged

OFFERED = [*TOOLS, {"name": CUSTOM_TOOL, "kind": "custom"}]
SHORT_WAYS = [name for name, protocol in PROTOCOLS.items() if protocol.plain_answer is not never_plain]
RECORDED = [case for case in corpus.cases() if "upstream_json" in case]
WRITE = {"name": TOOL, "parameters": {"type": "object", "properties": {"file_path": {"type": "string"}}}}

# What filters and checks look for, and what looks like it.
WORDS = [
    "",
    " \n",
    "one line",
    "two\nlines, `code` and [a link](x)",
    "<think>so</think>yes",
    "so</think>yes",
    "[THINK]",
    '<tool_call>{"name": "read_file", "arguments": {"path": "a"}}</tool_call>',
    '{"name": "read_file", "arguments": {"path": "a"}}',
    "~~~\ncode\n~~~ to=functions.read_file",
    "the end<|im_end|>",
    "\n\n  a < b",
    "half \ud83d",
    "\u2028 東",
]
ARGUMENTS = [
    "",
    "{}",
    '{"path": "a"}',
    '{"path":"a"} ',
    '{"path": "a", "path": "b"}',
    '{"path": "a", "p\\u0061th": "b"}',
    '{"path": "path"}',
    '{"path": "a", "limit": 3}',
    '{"path": "a", "limit": "3"}',
    '{"path": "a", "limit": null}',
    '{"path": "a", "nested": {"b": [1, 2.0]}}',
    '{"path": "a\\ud83d"}',
    '{"path": "a"',
    '{"file": "a"}',
    "[]",
]
IDS = ["call_1", "call 1", "dgm-x", "", "x" * 65, "functions.read_file:0"]
NAMES = ["read_file", "Read_File", "functions.read_file", "unheard_of", CUSTOM_TOOL, ""]


class Long(Exception):
    """A decoder was made: the answer did not take the short way."""


def long_way(*_: object) -> Any:
    raise Long


def without(it: Exchange, **parts: Any) -> Exchange:
    """`it`, with an upstream that lacks something."""
    it._upstream = msgspec.structs.replace(it._upstream, **parts)
    return it


def is_short(name: str, body: bytes, tools: Any = TOOLS, **options: Any) -> bool:
    it = exchange(name, name, tools, stream=False, **options)
    try:
        return run(without(it, decoder=long_way), [body]) == body
    except Long:
        return False


def outcome(it: Exchange, chunks: list[bytes]) -> tuple[Any, ...]:
    """Everything that can be seen of an exchange from outside."""
    heard: list[Event] = []
    it.tap = heard.extend
    out = run(it, chunks)
    if it.failure is None:
        Order("upstream").check(heard)
    answer = collect(heard)
    said = (answer.start, answer.parts, answer.usage, answer.end, answer.failed)
    state = (it.over, it.started, it.meaningful, it.failure, it.usage, it.rejected, it.notices)
    return out, it.receipts, state, said


def both_ways(name: str, chunks: list[bytes], tools: Any = OFFERED, **options: Any) -> None:
    def it() -> Exchange:
        return exchange(name, name, tools, stream=False, clock=lambda: 5.0, **options)

    assert outcome(it(), chunks) == outcome(without(it(), plain_answer=never_plain), chunks)


def wholes(name: str) -> list[bytes]:
    return [sample.whole for sample in SAMPLES[name].values() if sample.whole is not None]


@st.composite
def reworded(draw: st.DrawFn, body: bytes) -> bytes:
    """A body in which some strings are others, of the kind that filters and checks look at."""
    value = json.loads(body)
    strings = [path for path in mutations.paths(value) if isinstance(at(value, path), str)]
    for path in draw(st.lists(st.sampled_from(strings), min_size=1, max_size=3)):
        new = draw(st.sampled_from([*WORDS, *ARGUMENTS, *IDS, *NAMES]))
        value = mutations.edited(value, path, ("set", new))
    indent = draw(st.sampled_from([None, None, 2]))
    return json.dumps(value, indent=indent, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")


def at(value: Any, path: mutations.Path) -> Any:
    for key in path:
        value = value[key]
    return value


def options() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "rules_off": st.sampled_from([frozenset({"call-in-text"}), frozenset({"think-tags"})]),
            "unopened_thinking": st.booleans(),
            "include_usage": st.booleans(),
            "stop": st.sampled_from([("line",), ("never said",)]),
            "invalid": st.sampled_from(["pass", "error", "reask"]),
            "mode": st.sampled_from(["live", "live", "whole"]),
        },
    )


def agree(name: str, bodies: st.SearchStrategy[bytes], examples: int) -> None:
    cases = st.tuples(bodies.flatmap(mutations.chunked), options())
    fuzz(cases, lambda case: both_ways(name, case[0], **case[1]), examples)


def test_a_glance_is_right_about_texts_that_nothing_is_to_be_done_about() -> None:
    bits = [
        "a",
        " ",
        "\n",
        "/",
        "think>",
        "functools",
        "to=functions.read_file",
        "to",
        "=",
        "~",
        "{",
        '"name"',
        ":",
    ]
    marks = [
        "◁/think▷",
        "<",
        "[",
        "`",
        "assistantcommentary to=read_file",
        '{"path": "a"}',
        "|>",
        "東",
        "\x85",
    ]
    glanced = 0

    def look(text: str) -> None:
        nonlocal glanced
        if is_untagged(text) and is_unmarked(text):
            glanced += 1
            splitter, leaks = ThinkSplitter(unopened=True), LeakFilter({"read_file": None})
            assert splitter.feed(text) + splitter.close() == ([("text", text)] if text else [])
            assert "".join(map(str, leaks.feed(text) + leaks.close())) == text

    fuzz(st.lists(st.sampled_from([*bits, *bits, *marks]), max_size=8).map("".join), look, 600)
    assert glanced > 100


@pytest.mark.parametrize("arguments", ARGUMENTS)
@pytest.mark.parametrize("words", WORDS)
def test_both_ways_agree_on_words_and_arguments(words: str, arguments: str) -> None:
    value = json.loads(SAMPLES["openai-chat"]["tool"].whole or b"")
    message = value["choices"][0]["message"]
    message["content"] = words
    message["tool_calls"][0]["function"] = {"name": "read_file", "arguments": arguments}
    both_ways("openai-chat", [json.dumps(value).encode()])
    value["choices"][0]["finish_reason"] = "stop"
    del message["tool_calls"]
    both_ways("openai-chat", [json.dumps(value).encode()])


@pytest.mark.parametrize("name", SHORT_WAYS)
def test_both_ways_agree_on_every_sample(name: str) -> None:
    for body in wholes(name):
        both_ways(name, [body])
        both_ways(name, [body + b"\n"])
        both_ways(name, [body, b"\n", body])
        both_ways(name, [json.dumps(json.loads(body), indent=1).encode()])


def test_both_ways_agree_on_every_recorded_body() -> None:
    assert RECORDED
    for case in RECORDED:
        both_ways(case["upstream_protocol"], corpus.upstream_chunks(case), case["request_tools"])


@pytest.mark.parametrize("name", SHORT_WAYS)
def test_both_ways_agree_on_spoiled_bytes(name: str) -> None:
    agree(name, st.sampled_from(wholes(name)).flatmap(mutations.spoiled_bytes), 150)


@pytest.mark.parametrize("name", SHORT_WAYS)
def test_both_ways_agree_on_values_of_other_types(name: str) -> None:
    agree(name, st.sampled_from(wholes(name)).flatmap(mutations.retyped_body), 300)


@pytest.mark.parametrize("name", SHORT_WAYS)
def test_both_ways_agree_on_other_words(name: str) -> None:
    agree(name, st.sampled_from(wholes(name)).flatmap(reworded), 400)


@pytest.mark.parametrize("name", SHORT_WAYS)
def test_both_ways_agree_on_answers_that_are_made_up(name: str) -> None:
    stops = tuple(Stop)
    agree(name, answers.spoken("text call", stops).map(lambda said: answers.whole(said, name)), 150)


@pytest.mark.parametrize("name", SHORT_WAYS)
@pytest.mark.parametrize("kind", ["text", "unicode", "tool", "parallel", "max_tokens"])
def test_plain_samples_take_the_short_way(name: str, kind: str) -> None:
    body = SAMPLES[name][kind].whole
    assert body is not None
    assert is_short(name, body)


def test_the_benched_answer_takes_the_short_way() -> None:
    body = benched(CHAT, SHORT)
    assert is_short("openai-chat", body, [WRITE])
    assert is_short("openai-chat", json.dumps(json.loads(body), indent=2).encode(), [WRITE])


@pytest.mark.parametrize(
    "edits",
    [
        {("choices", 0, "finish_reason"): "stop"},
        {("choices", 0, "finish_reason"): "length"},
        {("choices", 0, "finish_reason"): None},
        {("choices", 0, "message", "role"): "user"},
        {("choices", 0, "message", "content"): "<think>so</think>yes"},
        {("choices", 0, "message", "content"): ["yes"]},
        {("choices", 0, "message", "reasoning_content"): "so"},
        {("choices", 0, "message", "refusal"): "no"},
        {("choices", 0, "message", "tool_calls", 0, "id"): "a b"},
        {("choices", 0, "message", "tool_calls", 0, "id"): "dgm-x"},
        {("choices", 0, "message", "tool_calls", 0, "function", "name"): "Write_"},
        {("choices", 0, "message", "tool_calls", 0, "function", "arguments"): '{"file_path": 3}'},
        {("choices", 0, "message", "tool_calls", 0, "function", "arguments"): '{"file_path": "a"'},
        {("choices", 0, "message", "tool_calls", 0, "function", "arguments"): {"file_path": "a"}},
        {("choices", 0, "message", "tool_calls"): []},
        {("choices",): []},
        {("error",): {"message": "no"}},
        {("usage", "total_tokens"): 3},
        {("object",): "chat.completion.chunk"},
        {("id",): ""},
        {("created",): -1},
    ],
)
def test_what_is_unusual_takes_the_long_way(edits: dict[mutations.Path, Any]) -> None:
    value = json.loads(benched(CHAT, SHORT))
    for path, new in edits.items():
        value = mutations.edited(value, path, ("set", new))
    assert not is_short("openai-chat", json.dumps(value).encode(), [WRITE])


@pytest.mark.parametrize("options", [{"mode": "whole"}, {"invalid": "reask"}, {"stop": ("wwwww",)}])
def test_an_answer_to_be_changed_takes_the_long_way(options: dict[str, Any]) -> None:
    assert not is_short("openai-chat", benched(CHAT, SHORT), [WRITE], **options)


def test_the_same_call_twice_takes_the_long_way() -> None:
    value = json.loads(benched(CHAT, SHORT))
    calls = value["choices"][0]["message"]["tool_calls"]
    value["choices"][0]["message"]["tool_calls"] = [*calls, calls[0] | {"id": "call_other"}]
    assert not is_short("openai-chat", json.dumps(value).encode(), [WRITE])
