"""Calls that models write as Python, or nearly, and tools whose name the upstream does not allow."""

import json
from typing import Any

import pytest
from support.exchanges import exchange, run
from support.leaks import found

from dragoman.conform import neutral
from dragoman.tools.leaks.python_text import statements

_TEXT = {"type": "string"}
RUN = {"type": "object", "properties": {"script": _TEXT, "day": {"type": "integer"}, "code": _TEXT}}
TOOLS: dict[str, Any] = {"run": RUN, "mark": {"type": "object", "properties": {"tags": {"type": "array"}}}}


def lfm2(calls: str) -> str:
    return f"<|tool_call_start|>[{calls}]<|tool_call_end|>"


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("run(script='sed -n '1,5p' a.py')", {"script": "sed -n '1,5p' a.py"}),
        ("run(script='it's here', day=3)", {"script": "it's here", "day": 3}),
        ('run(script="say "a, b" twice")', {"script": 'say "a, b" twice'}),
        ("run(script='a\\'b' c')", {"script": "a'b' c"}),
        ("run(script='a\nb\0c\r')", {"script": "a\nb\0c\r"}),
        ("run(code=0071)", {"code": "0071"}),
        ("run(script='07 and 010', day=10)", {"script": "07 and 010", "day": 10}),
    ],
)
def test_nearly_python(call: str, arguments: dict[str, Any]) -> None:
    assert found(lfm2(call), TOOLS) == ("", [("run", arguments)])


@pytest.mark.parametrize(
    "call", ["list-files(max-size=3, sort-by='a-b(c)')", "fs:list-files(max-size=3, sort-by='a-b(c)')"]
)
def test_names_with_signs(call: str) -> None:
    tools = {
        "list-files": {"type": "object", "properties": {"max-size": {"type": "integer"}, "sort-by": _TEXT}}
    }
    wanted = [("list-files", {"max-size": 3, "sort-by": "a-b(c)"})]
    assert found(lfm2(call), tools) == ("", wanted)
    assert found(f"<function_calls>{call}\n{call}</function_calls>", tools) == ("", wanted * 2)
    assert found(f"[{call}]", tools) == ("", wanted)


def test_inner_quotes_in_one_of_several_calls() -> None:
    calls = "run(script='it's ok', day=1), mark(tags={'x', 'y'}), run(script='b')"
    assert found(f"{lfm2(calls)} Done.", TOOLS) == (
        " Done.",
        [("run", {"script": "it's ok", "day": 1}), ("mark", {"tags": ["x", "y"]}), ("run", {"script": "b"})],
    )
    assert found("[run(script='it's ok')]", TOOLS) == ("", [("run", {"script": "it's ok"})])


@pytest.mark.parametrize("text", ["[run(script='it's ok'", "[run(script='it's ok", "[run(script='it's ok')"])
def test_a_cut_call_with_inner_quotes_stays_text(text: str) -> None:
    assert found(text, TOOLS) == (text, [])


def test_many_quotes_are_read_in_one_pass() -> None:
    assert statements("[run(" + "a='b" * 4000) is None


@pytest.mark.parametrize("piece", ["a", "a:", "-", "a-b ", "a=", "0", "'", "', a=", "(", ",", ", a='"])
def test_hopeless_text_is_read_in_linear_time(piece: str) -> None:
    """The text is so long that the square of its length would take hours."""
    assert statements("[run(x=" + piece * (200_000 // len(piece)) + " ?") is None


def test_a_leading_zero_counts_only_for_strings() -> None:
    tools = [{"name": "run", "parameters": RUN}]
    for raw in (lfm2("run(day=07, code=07)"), lfm2("run(day='07', code='07')")):
        said = answer(raw, tools)
        assert [call["arguments"] for call in said["tool_calls"]] == [{"day": 7, "code": "07"}]


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'id': 'c', 'model': 'm', 'choices': [choice]})}\n\n".encode()


def answer(content: str, tools: list[Any], calls: Any = None) -> neutral.Neutral:
    delta = {"content": content, **({"tool_calls": calls} if calls else {})}
    it = exchange("openai-chat", "openai-chat", tools)
    return neutral.reduce(
        "openai-chat", run(it, [chunk(delta), chunk({}, "stop"), b"data: [DONE]\n\n"]), stream=True
    )


def test_the_own_name_of_a_tool_that_has_another_name_at_the_upstream() -> None:
    """OpenAI does not allow points in names, so the upstream gets another name. A model writes its own."""
    tools = [{"name": "mail.send", "parameters": {"type": "object", "properties": {"to": _TEXT}}}]
    wanted = [("mail.send", {"to": "ann"})]
    leaked = answer('<tool_call>{"name": "mail.send", "arguments": {"to": "ann"}}</tool_call>', tools)
    assert [(call["name"], call["arguments"]) for call in leaked["tool_calls"]] == wanted
    function = {"name": "mail.send", "arguments": '{"to": "ann"}'}
    called = answer("", tools, [{"index": 0, "id": "c1", "type": "function", "function": function}])
    assert [(call["name"], call["arguments"]) for call in called["tool_calls"]] == wanted
