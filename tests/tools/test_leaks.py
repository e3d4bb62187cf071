"""Calls written as text are recovered for every chunking. Text that only shows calls stays text."""

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.leaks import (
    ARGS,
    HERMES,
    INVOKE,
    JSON,
    LS,
    NS,
    OTHERS,
    QWEN,
    SAMPLES,
    TOOLS,
    calls_of,
    found,
    run,
    text_of,
)

from dragoman.conform import corpus
from dragoman.tools.leaks import LeakedCall, LeakFilter
from dragoman.tools.leaks import block as leak_block
from dragoman.tools.leaks.formats import FORMATS

# --- the corpus ---


def _deltas(case: dict[str, Any]) -> list[str]:
    """The visible text of a case, in the chunks of its upstream."""
    deltas: list[str] = []
    for line in re.findall(r"^data: (\{.*\})$", case.get("upstream_sse") or "", re.MULTILINE):
        event = json.loads(line)
        choices = event.get("choices") or ()
        deltas += [(choice.get("delta") or {}).get("content") or "" for choice in choices]
        if event.get("type") == "content_block_delta":
            deltas.append(event["delta"].get("text") or "")
    return [delta for delta in deltas if delta]


def _corpus() -> list[Any]:
    wanted = [c for c in corpus.cases() if c["theme"] in ("leak", "guard", "reasoning") and _deltas(c)]
    return [pytest.param(c, id=c["id"]) for c in wanted if "think" not in c["id"] or c["theme"] == "guard"]


CORPUS = _corpus()


def _check(case: dict[str, Any], chunks: list[str]) -> None:
    tools = {tool["name"]: tool["parameters"] for tool in case.get("request_tools", [])}
    segments, dropped = run(chunks, tools)
    expect = case["expect"]
    text = text_of(segments)
    if expect.get("text_trim"):
        assert text.strip() == expect["text"].strip()
    else:
        assert text == expect["text"]
    calls = calls_of(segments)
    got = [{"name": call.name, "arguments": json.loads(call.arguments, strict=False)} for call in calls]
    # The case also has structured calls, which this stage does not see.
    assert got == expect["tool_calls"] or (not got and "tool_calls" in case["upstream_sse"])
    raw = "".join(s if isinstance(s, str) else s.raw for s in segments)
    assert raw + dropped == "".join(chunks)


@pytest.mark.parametrize("case", CORPUS)
def test_corpus_in_every_chunking(case: dict[str, Any]) -> None:
    deltas = _deltas(case)
    for chunks in (["".join(deltas)], deltas, list("".join(deltas))):
        _check(case, chunks)


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_corpus_in_random_chunkings(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from([param.values[0] for param in CORPUS]))
    _check(case, _cut(data, "".join(_deltas(case))))


def _cut(data: st.DataObject, text: str) -> list[str]:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=8)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


# --- every format ---


def test_every_format_has_a_sample() -> None:
    assert sorted([*SAMPLES, *OTHERS]) == sorted(form.name for form in FORMATS if form.read)


@pytest.mark.parametrize("name", OTHERS)
def test_another_format_is_recovered(name: str) -> None:
    text, calls = OTHERS[name]
    assert found(text) == ("", calls)
    assert calls_of(run([text])[0])[-1].markup == name
    for shown in ("```\n{}\n```\n", "Write `{}` so"):
        assert found(shown.format(text)) == (shown.format(text), [])
    assert found(text, {"Other": None}) == (text, [])


@pytest.mark.parametrize("name", SAMPLES)
def test_a_format_is_recovered(name: str) -> None:
    text, calls = found(SAMPLES[name])
    assert (text, calls) == ("", [LS])
    [call] = calls_of(run([SAMPLES[name]])[0])
    assert call.markup == name
    assert call.raw == SAMPLES[name]


@pytest.mark.parametrize("name", SAMPLES)
def test_format_of_an_undeclared_tool_stays_text(name: str) -> None:
    kept = re.sub(r"<\|(eom_id|call|end_message)\|>$", "", SAMPLES[name])  # these formats end an answer
    assert found(SAMPLES[name], {"Other": None}) == (kept, [])
    assert found(SAMPLES[name], {}) == (kept, [])


@pytest.mark.parametrize("name", SAMPLES)
def test_format_in_code_stays_text(name: str) -> None:
    for shown in ("```\n{}\n```\nSo.", "So: ```xml\n{}\n```", "~~~\n{}\n~~~\n", "Write `{}` so"):
        text = shown.format(SAMPLES[name])
        assert found(text) == (text, [])


# Their samples have line breaks, and no quotation goes on in the next line.
_ONE_LINE = [name for name, sample in SAMPLES.items() if "\n" not in sample]


@pytest.mark.parametrize("name", _ONE_LINE)
def test_format_in_a_quotation_stays_text(name: str) -> None:
    for shown in ("> {}\nWell.", "See:\n> So {} there\nWell.", 'Write "{}" so.', "Say: \u201c{}\u201d."):
        text = shown.format(SAMPLES[name])
        assert found(text) == (text, [])


@pytest.mark.parametrize("name", SAMPLES)
def test_a_cut_call_is_text(name: str) -> None:
    cut = re.sub(r"(?<=\W)ls\b.*", "l", SAMPLES[name], flags=re.DOTALL)
    assert found(cut) == (cut, [])


def test_opening_marks_begin_with_the_searched_characters() -> None:
    for candidate in FORMATS:
        for head in candidate.heads:
            for mark in head.marks:
                assert candidate.place != "anywhere" or mark[0] in "<[]"
                assert not set("`\n") & set(mark)


# --- variants ---

_ONE = [LS]
VARIANTS = [
    (f"<tool_call>\n<tool_call>\n{JSON}\n</tool_call>", "", _ONE),
    (f"<tool_call>\n```json\n{JSON}\n```\n</tool_call>", "", _ONE),
    (f"<tool_call>{JSON}", "", _ONE),
    (f"<tool_call>{JSON[:-1]}</tool_call>", "", _ONE),
    ('<tool_call>{"name": "bash", "command": "ls"}</tool_call>', "", _ONE),
    ('<tool_call>{"name": "Read", "arguments": null}</tool_call>', "", [("Read", {})]),
    ('<tool_call>{"name": "find", "arguments": "{}"}</tool_call>', "", [("mcp__docs__find", {})]),
    ('<tool_call>{"name": "Read", "arguments": {"a": "</tool_call>"}}</tool_call>', "",
     [("Read", {"a": "</tool_call>"})]),
    (f"<tool_call>{JSON}\n{JSON}</tool_call>", "", _ONE * 2),
    (f"<|python_tag|>{JSON}; {JSON}<|eot_id|>", "", _ONE * 2),
    (f"{QWEN}\n</tool_call>\nmore", "\nmore", _ONE),
    (f"{QWEN.replace('</function>', '')}</tool_call>", "", _ONE),
    (QWEN.replace("</parameter>", ""), "", _ONE),
    (f"<function=Bash{ARGS}</function>", "", _ONE),
    (f"[TOOL_CALLS]Bash{ARGS}[TOOL_CALLS]Bash[ARGS]{ARGS}\n\nWait.", "\n\nWait.", _ONE * 2),
    (f"Sure.\ncommentary to=functions.Bash <|message|>{ARGS}", "Sure.\n", _ONE),
    (f"<minimax:tool_call>\n{INVOKE}\n{INVOKE}\n</minimax:tool_call>", "", _ONE * 2),
    ("<tool_call>Read</tool_call>", "", [("Read", {})]),
    ("<|tool_call_begin|>functions.Read:0<|tool_call_end|>", "", [("Read", {})]),
    (QWEN.replace("ls", "ls</function> or"), "", [("Bash", {"command": "ls</function> or"})]),
    ('<|tool_call>call:Read{a:<|"|>x<tool_call|><|"|>}<tool_call|>', "",
     [("Read", {"a": "x<tool_call|>"})]),
    ('\n\n{"arguments": {"command": "ls"}, "name": "Bash"}\n<|im_end|>', "", _ONE),
    (f'{{"tool_calls": [{JSON}, {JSON}]}}', "", _ONE * 2),
    (f"Look: {HERMES}\nThen.", "Look: \nThen.", _ONE),
    (f"I look.\n\n{JSON}", "I look.\n\n", _ONE),
    (f"I look.\n{JSON};\n{JSON}\n", "I look.\n", _ONE * 2),
    (f"I look.\n[{JSON}, {JSON}]<|im_end|>", "I look.\n", _ONE * 2),
    ("I look.\n\n[Bash(command='ls'), Bash(command='ls')]", "I look.\n\n", _ONE * 2),
    (f'Thought: I look.\nAction:\n```\n{{"action": "Bash", "action_input": {ARGS}}}\n```\nObservation',
     "Thought: I look.\n\nObservation", _ONE),
    ('**Action:**\n```json\n{"action": "Bash", "action_input": "ls"}\n```', "", [("Bash", "ls")]),
    ("Thought: I look.\nAction: Bash\nAction Input: ls\nObservation: a", "Thought: I look.\nObservation: a",
     _ONE),
    (f"It`s so\n{HERMES}", "It`s so\n", _ONE),
    (f"```py\nx\n```{HERMES}", "```py\nx\n```", _ONE),
]  # fmt: skip


@pytest.mark.parametrize(("text", "left", "calls"), VARIANTS)
def test_variant(text: str, left: str, calls: list[Any]) -> None:
    assert found(text) == (left, calls)


NOT_CALLS = [
    f"Write {HERMES} to run a command.",
    f"> {HERMES}\n",
    f"For example:\n\n    {HERMES}\n",
    '<tools>[{"name": "Bash", "description": "d", "parameters": {"type": "object"}}]</tools>',
    "The <tool_call> tag wraps JSON, <function=Bash> is Qwen's, [TOOL_CALLS] is Mistral's.",
    f"<function=nope>\n<parameter=text>\n{HERMES}\n</parameter>\n</function>\n",
    '{"name": "Bash", "arguments": {"command": "ls"}} would do it.',
    '{"name": "Bash", "arguments": {"command": "ls"}, "score": 3}',
    '[{"name": "Ann"}, {"name": "Bash"}]',
    "[link](https://example.org) and [1], [2]",
    "[Bash(open(1))]",
    f'[{JSON}, {{"name": "nope", "arguments": {{}}}}]',
    'So:\n\n{"name": "Bash", "arguments": {"command": "ls"}}\n\nwould do it.',
    'So:\n\n    {"name": "Bash", "arguments": {"command": "ls"}}',
    'So:\n\n> {"name": "Bash", "arguments": {"command": "ls"}}',
    'So:\n[Bash(command="ls")](https://example.org)',
    "Let me try this:\n[",
    'Action: think\n```json\n{"action": "Bash", "action_input": {"command": "ls"}}\n```',
    'Action:\n```json\n{"action": "nope", "action_input": {}}\n```',
    "Action: Bash\nAction Input: ls",
    "a <",
    "commentary to=nobody json{}",
    "```\n" + HERMES,
]


@pytest.mark.parametrize("text", NOT_CALLS)
def test_text_without_calls_is_unchanged(text: str) -> None:
    assert found(text) == (text, [])


def test_digits_and_broken_json_come_as_they_were_written() -> None:
    for arguments in ('{"n": 12345678901234567890.10}', "{'command': 'ls',}", '{"a": "x\ny"}'):
        text = f'<tool_call>{{"name": "Bash", "arguments": {arguments}}}</tool_call>'
        [call] = calls_of(run([text])[0])
        assert call.arguments == arguments


def test_a_value_may_contain_the_marks_of_its_format() -> None:
    value = f"Write:\n<tool_call>\n{QWEN}\n</tool_call>\nor </parameter>."
    text = f"<function=Bash>\n<parameter=command>\n{value}\n</parameter>\n</function>"
    assert found(text) == ("", [("Bash", {"command": value})])


def test_an_ambiguous_tool_name_is_text() -> None:
    tools = {"bash": None, "BASH": None}
    assert found(HERMES, tools) == (HERMES, [])


# --- the ends of an answer, holding ---


@pytest.mark.parametrize("tools", [{}, TOOLS])
def test_end_tokens_are_dropped_at_the_very_end_only(tools: dict[str, Any]) -> None:
    assert found("Hi<|im_end|>\n<|endoftext|>", tools) == ("Hi", [])
    assert found("```\nx\n```<|eot_id|>", tools) == ("```\nx\n```", [])
    assert found("A</s>", tools) == ("A", [])
    for text in ("Say <|im_end|> twice", "`<|im_end|>`", "<s>A</s>", "a <|im_e"):
        assert found(text, tools) == (text, [])


def test_text_is_held_only_while_it_may_begin_a_mark() -> None:
    leaks = LeakFilter(TOOLS)
    assert leaks.feed("Hello") == ["Hello"]
    assert leaks.feed(" a <b> c <tool_") == [" a <b> c "]
    assert leaks.holding
    assert leaks.feed("s and `x` [1] ]") == ["<tool_s and `x` [1] "]
    assert leaks.feed("<b") == ["]<b"]
    assert not leaks.holding
    assert leaks.feed(" " + HERMES[:-1]) == [" "]
    assert leaks.feed(">\n") == [LeakedCall("Bash", ARGS, "hermes", HERMES)]
    assert leaks.feed("So.") == ["\nSo."]


def test_a_json_answer_is_released_at_its_first_member() -> None:
    leaks = LeakFilter(TOOLS)
    assert leaks.feed('{"city": "Par') == ['{"city": "Par']
    leaks = LeakFilter(TOOLS)
    assert leaks.feed('[{"name": "Ann"') == ['[{"name": "Ann"']


def test_an_oversized_block_and_the_rest_are_text(monkeypatch: Any) -> None:
    monkeypatch.setattr(leak_block, "MAX_BLOCK", 100)
    text = f'<tool_call>{JSON[:-3]}{"x" * 90}"}}}}</tool_call>\n{HERMES}'
    assert found(text) == (text, [])
    assert found(HERMES) == ("", [LS])


# --- laws ---

_LOOSE = [
    "<tool_call>", "</tool_call>", "<function=Bash>", "<function=no>", "<parameter=command>",
    "</parameter>", "</function>", "<|im_end|>", "</s>", "<s>", "`", "``", "```", "~~~", "> ", "{",
    "}", "[", "]", '"', "'", "\\", "<", "<|", "word", "it`s", "; ", "to=functions.Bash", NS, "I look.",
    "Then ", "<Bash>", "</Bash>", "<command>", "</command>", "<|eom|>",
    "<|start|>assistant to=user<|message|>",
    "to=self<|message|>", "<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|end_message|>",
    "<|message_model|>", "<|content_text|>", "Action: Bash\n", "Action Input: ", "functools",
]  # fmt: skip
_PIECES = [*SAMPLES.values(), QWEN, INVOKE, JSON, ARGS, *_LOOSE, *_LOOSE, "\n", "\n\n", "    "]
_TEXTS = st.one_of(
    st.lists(st.sampled_from(_PIECES), max_size=12).map("".join),
    st.text("<>|[]{}`~\n ab", max_size=40),
)


@given(text=_TEXTS, data=st.data())
@settings(max_examples=400, deadline=None)
def test_no_text_is_lost_and_chunking_does_not_matter(text: str, data: st.DataObject) -> None:
    segments, dropped = run([text])
    raw = "".join(s if isinstance(s, str) else s.raw for s in segments)
    assert raw + dropped == text
    assert run(_cut(data, text)) == (segments, dropped)
    assert run(list(text)) == (segments, dropped)


@given(text=st.text())
def test_without_tools_all_but_end_tokens_passes(text: str) -> None:
    segments, dropped = run([text], {})
    assert text_of(segments) + dropped == text
    assert not dropped or dropped.startswith("<")


@pytest.mark.parametrize("frame", [HERMES, QWEN, "```\nls\n```", "<tool_call>{'ls"])
def test_cost_is_linear(frame: str) -> None:
    def cost(size: int) -> float:
        text = frame.replace("ls", "ls <b> `x` \\n" * (size // 12))
        began = time.process_time()
        run([text[at : at + 4] for at in range(0, len(text), 4)])
        return time.process_time() - began

    small = min(cost(30_000) for _ in range(3))
    assert cost(240_000) < 24 * small  # eight times as long, with room for noise
