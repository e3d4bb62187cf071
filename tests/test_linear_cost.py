"""The cost of an answer grows linearly with its length, for any content and any chunking."""

import json
import time
from collections.abc import Iterator

import pytest

from dragoman.model.messages import Tool
from dragoman.tools.leaks.formats import FORMATS
from dragoman.translation.options import Options
from dragoman.translation.translation import Translation

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "o": {"type": "object", "additionalProperties": False}},
    "required": ["a"],
}
TOOLS = [Tool(name="f", parameters=SCHEMA)]
MARKS = sorted({mark for f in FORMATS for head in f.heads for mark in head.marks if len(mark) > 2})
OPENED = [
    '<tool_call>{"name":"f","arguments":{"a":"',
    "<function=f><parameter=a>",
    '<invoke name="f"><parameter name="a">',
    "<tool_call>f<arg_key>a</arg_key><arg_value>",
    "[TOOL_CALLS]f[ARGS]{",
    "<|tool_call>call:f{",
    '<|tool_call>call:f{a:<|"|>x<|"|>,b:',
    ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="f">]<]minimax[>[<a>',
    '<|open|>call tool="f" index="1"<|sep|><|open|>argument key="a" type="string"<|sep|>',
    "<function_calls>f(a='",
    "<f><a>x</a>",
    "\n<f>\n<a>",
    'Action: f\nAction Input: {"a": "',
]
CODE = ["```", "``` ", "```\n", "`", "`a", "``a`", "~~~", "~~~\n", "> `", "    "]
SIGNS = ["<", "{", "[", "\\", "\n", '"', "'", '{"a":', "[1,", "//", "\\u00", "</think>", "`</think>`"]
SIGNS += [">", "<think></think>", "<|im_end|>", "to=functions.f "]
UNITS = [*CODE, *SIGNS, *OPENED]
SMALL = 4000
SOME_MARKS = MARKS[::12]


def delta(said: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": said, "finish_reason": finish}
    return b"data: %b\n\n" % json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode()


def answer(place: str, text: str, size: int) -> Iterator[bytes]:
    """A Chat stream with `text` in pieces of `size`."""
    for start in range(0, len(text), size):
        piece = text[start : start + size]
        if place != "arguments":
            yield delta({place: piece})
            continue
        first = {"id": "call_1", "type": "function"} if start == 0 else {}
        function = {"arguments": piece} if start else {"name": "f", "arguments": piece}
        yield delta({"tool_calls": [{"index": 0, **first, "function": function}]})
    yield delta({}, "stop") + b"data: [DONE]\n\n"


def cost(frames: list[bytes], *, stream: bool) -> float:
    options = Options(id="x", model="m", mode="live" if stream else "whole", stream=stream)
    exchange = Translation("openai-chat", "anthropic", tools=TOOLS, options=options)
    began = time.process_time()
    for frame in frames:
        exchange.feed(frame)
    exchange.close()
    return time.process_time() - began


def is_linear(place: str, unit: str, size: int, *, stream: bool) -> bool:
    """Does four times the text cost about four times as much? Quadratic cost would be sixteen times."""
    small, large = SMALL // len(unit), 4 * SMALL // len(unit)
    short = list(answer(place, unit * small, size))
    long = list(answer(place, unit * large, size))
    for _ in range(5):  # other programs may disturb one measurement
        before, after = cost(short, stream=stream), cost(long, stream=stream)
        if after < 9 * before or after < 0.02:
            return True
    return False


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize("place", ["content", "reasoning_content", "arguments"])
def test_cost_is_linear(place: str, size: int, stream: bool) -> None:
    units = UNITS if place == "arguments" else [*UNITS, *SOME_MARKS]
    assert [unit for unit in units if not is_linear(place, unit, size, stream=stream)] == []
