"""Calls written as text are recovered, whatever the chunking; text that only shows them is text."""

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.conformance import corpus
from dragoman.tools.leaks import LeakedCall, LeakFilter, Segment
from dragoman.tools.leaks import block as leak_block
from dragoman.tools.leaks.formats import FORMATS

_BASH = {"type": "object", "properties": {"command": {"type": "string"}}}
TOOLS: dict[str, Any] = {"Bash": _BASH, "Read": None, "mcp__docs__find": None}
HERMES = '<tool_call>{"name": "Bash", "arguments": {"command": "ls"}}</tool_call>'


def run(chunks: list[str], tools: dict[str, Any] = TOOLS) -> tuple[list[Segment], str]:
    leaks = LeakFilter(tools)
    segments = [segment for chunk in chunks for segment in leaks.feed(chunk)] + leaks.close()
    assert not leaks.holding
    joined: list[Segment] = []
    for segment in segments:
        if isinstance(segment, str) and joined and isinstance(joined[-1], str):
            joined[-1] += segment
        else:
            joined.append(segment)
    return joined, leaks.dropped


def text_of(segments: list[Segment]) -> str:
    return "".join(segment for segment in segments if isinstance(segment, str))


def calls_of(segments: list[Segment]) -> list[LeakedCall]:
    return [segment for segment in segments if isinstance(segment, LeakedCall)]


def found(text: str, tools: dict[str, Any] = TOOLS) -> tuple[str, list[tuple[str, Any]]]:
    """The text that is left, and the calls; the same whole and one character at a time."""
    segments, dropped = run([text], tools)
    assert run(list(text), tools) == (segments, dropped)
    raw = "".join(s if isinstance(s, str) else s.raw for s in segments)
    assert raw + dropped == text
    calls = calls_of(segments)
    return text_of(segments), [(c.name, json.loads(c.arguments, strict=False)) for c in calls]


# --- the corpus ---


def _deltas(case: dict[str, Any]) -> list[str]:
    """The visible text of a case, as its upstream cut it."""
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
    # Calls that the case sends as structured ones are not ours to give.
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

_LS = ("Bash", {"command": "ls"})
_QWEN = "<function=Bash>\n<parameter=command>\nls\n</parameter>\n</function>"
_INVOKE = '<invoke name="Bash">\n<parameter name="command">ls</parameter>\n</invoke>'
_JSON = '{"name": "Bash", "arguments": {"command": "ls"}}'
_ARGS = '{"command": "ls"}'
_STEP = _INVOKE.replace("<", "<steptml:").replace("steptml:/", "/steptml:")
_ATEM = _STEP.replace("steptml", "atem")
_NS = "]<]minimax[>["
_K3 = '<|open|>tools<|sep|><|open|>call tool="Bash" index="1"<|sep|>'

SAMPLES = {
    "hermes": HERMES,
    "qwen-tools": f"<tools>\n{_JSON}\n</tools>",
    "function-call": f"<function_call>{_JSON}</function_call>",
    "functioncall": f"<functioncall> {_JSON}",
    "tool-calls": f"<tool_calls>[{_JSON}]</tool_calls>",
    "nemotron": f"<TOOLCALL>[{_JSON}]</TOOLCALL>",
    "longcat": f"<longcat_tool_call>{_JSON}</longcat_tool_call>",
    "minimax-m1": f"<minimax:tool_call>\n{_JSON}\n</minimax:tool_call>",
    "granite": f"<|tool_call|>[{_JSON}]",
    "cohere": f'<|START_ACTION|>[{{"tool_name": "Bash", "parameters": {_ARGS}}}]<|END_ACTION|>',
    "internlm": f"<|action_start|><|plugin|>\n{_JSON}<|action_end|>",
    "apertus": f'<|tools_prefix|>[{{"Bash": {_ARGS}}}]<|tools_suffix|>',
    "llama": f'<|python_tag|>{{"name": "Bash", "parameters": {_ARGS}}}<|eom_id|>',
    "llama4": "<|python_start|>[Bash(command='ls')]<|python_end|>",
    "lfm2": "<|tool_call_start|>[Bash(command='ls')]<|tool_call_end|>",
    "mistral": f"[TOOL_CALLS] [{_JSON}]",
    "mistral-named": f"[TOOL_CALLS]Bash[CALL_ID]a1[ARGS]{_ARGS}",
    "qwen": f"<tool_call>\n{_QWEN}\n</tool_call>",
    "llama-function": f"<function=Bash>{_ARGS}</function>",
    "minicpm": '<function name="Bash"><param name="command">ls</param></function>',
    "glm": "<tool_call>Bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
    "invoke": f"<function_calls>\n{_INVOKE}\n</function_calls>",
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>Bash<｜tool▁sep｜>"  # noqa: RUF001
    + _ARGS
    + "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",  # noqa: RUF001
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.Bash:0"
    f"<|tool_call_argument_begin|>{_ARGS}<|tool_call_end|><|tool_calls_section_end|>",
    "gemma": '<|tool_call>call:Bash{command:<|"|>ls<|"|>}<tool_call|>',
    "functiongemma": "<start_function_call>call:Bash{command:<escape>ls<escape>}<end_function_call>",
    "step3": f"<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>{_STEP}"
    "<|tool_call_end|><|tool_calls_end|>",
    "harmony": "<|start|>assistant<|channel|>commentary to=functions.Bash <|constrain|>json"
    f"<|message|>{_ARGS}<|call|>",
    "harmony-stripped": f"commentary to=functions.Bash json{_ARGS}",
    "json": f'{{"type": "function", "function": {_JSON}}}',
    "pythonic-list": "[Bash(command='ls')]",
    "functools": f"functools[{_JSON}]",
    "gigachat": f"<|function_call|>{_JSON}",
    "gigachat-role": f"<|message_sep|>\n\nfunction call<|role_sep|>\n{_JSON}",
    "inkling": '<|message_model|>Bash<|content_invoke_tool_json|>{"name": "Bash", "args": '
    f"{_ARGS}}}<|end_message|>",
    "kimi-k3": f'{_K3}<|open|>argument key="command" type="string"<|sep|>ls<|close|>argument<|sep|>'
    "<|close|>call<|sep|><|close|>tools<|sep|>",
    "kimi-k3-json": f"{_K3}<|open|>json<|sep|>{_ARGS}<|close|>json<|sep|><|close|>call<|sep|>",
    "minimax-m3": f'{_NS}<tool_call>\n{_NS}<invoke name="Bash">{_NS}<command>ls{_NS}</command>'
    f"{_NS}</invoke>\n{_NS}</tool_call>",
    "muse": f"<|start|>assistant to=Bash.Bash<|message|><atem:function_calls>{_ATEM}</atem:function_calls>",
    "muse-first": f" to=Bash<|message|><atem:function_calls>\n{_ATEM}\n</atem:function_calls>",
    "olmo": "<function_calls>Bash(command='ls')</function_calls>",
    "react": f"Action: Bash\nAction Input: {_ARGS}",
    "tagged": "<Bash>\n<command>ls</command>\n</Bash>",
    "tagged-json": f"<Bash>{_ARGS}</Bash>",
}


# These have no arguments, or no beginning of their own.
OTHERS = {
    "invoke-empty": ('<function_calls><invoke name="Read"/></function_calls>', [("Read", {})]),
    "muse-next": (
        SAMPLES["muse"].removesuffix("</atem:function_calls>") + f"{_ATEM}</atem:function_calls>",
        [_LS, _LS],
    ),
}


def test_every_format_has_a_sample() -> None:
    assert sorted([*SAMPLES, *OTHERS]) == sorted(form.name for form in FORMATS if form.read)


@pytest.mark.parametrize("name", OTHERS)
def test_other_format(name: str) -> None:
    text, calls = OTHERS[name]
    assert found(text) == ("", calls)
    assert calls_of(run([text])[0])[-1].markup == name
    for shown in ("```\n{}\n```\n", "Write `{}` so"):
        assert found(shown.format(text)) == (shown.format(text), [])
    assert found(text, {"Other": None}) == (text, [])


@pytest.mark.parametrize("name", SAMPLES)
def test_format(name: str) -> None:
    text, calls = found(SAMPLES[name])
    assert (text, calls) == ("", [_LS])
    [call] = calls_of(run([SAMPLES[name]])[0])
    assert call.markup == name
    assert call.raw == SAMPLES[name]


@pytest.mark.parametrize("name", SAMPLES)
def test_format_of_an_undeclared_tool_stays_text(name: str) -> None:
    kept = re.sub(r"<\|(eom_id|call|end_message)\|>$", "", SAMPLES[name])  # these end an answer
    assert found(SAMPLES[name], {"Other": None}) == (kept, [])
    assert found(SAMPLES[name], {}) == (kept, [])


@pytest.mark.parametrize("name", SAMPLES)
def test_format_in_code_stays_text(name: str) -> None:
    for shown in ("```\n{}\n```\nSo.", "So: ```xml\n{}\n```", "~~~\n{}\n~~~\n", "Write `{}` so"):
        text = shown.format(SAMPLES[name])
        assert found(text) == (text, [])


@pytest.mark.parametrize("name", SAMPLES)
def test_a_cut_call_is_text(name: str) -> None:
    cut = re.sub(r"(?<=\W)ls\b.*", "l", SAMPLES[name], flags=re.DOTALL)
    assert found(cut) == (cut, [])


def test_marks_begin_where_a_search_for_their_beginning_finds_them() -> None:
    for candidate in FORMATS:
        for head in candidate.heads:
            for mark in head.marks:
                assert candidate.place != "anywhere" or mark[0] in "<[]"
                assert not set("`\n") & set(mark)


# --- variants ---

_ONE = [_LS]
VARIANTS = [
    (f"<tool_call>\n<tool_call>\n{_JSON}\n</tool_call>", "", _ONE),
    (f"<tool_call>\n```json\n{_JSON}\n```\n</tool_call>", "", _ONE),
    (f"<tool_call>{_JSON}", "", _ONE),
    (f"<tool_call>{_JSON[:-1]}</tool_call>", "", _ONE),
    ('<tool_call>{"name": "bash", "command": "ls"}</tool_call>', "", _ONE),
    ('<tool_call>{"name": "Read", "arguments": null}</tool_call>', "", [("Read", {})]),
    ('<tool_call>{"name": "find", "arguments": "{}"}</tool_call>', "", [("mcp__docs__find", {})]),
    ('<tool_call>{"name": "Read", "arguments": {"a": "</tool_call>"}}</tool_call>', "",
     [("Read", {"a": "</tool_call>"})]),
    (f"<tool_call>{_JSON}\n{_JSON}</tool_call>", "", _ONE * 2),
    (f"<|python_tag|>{_JSON}; {_JSON}<|eot_id|>", "", _ONE * 2),
    (f"{_QWEN}\n</tool_call>\nmore", "\nmore", _ONE),
    (f"{_QWEN.replace('</function>', '')}</tool_call>", "", _ONE),
    (_QWEN.replace("</parameter>", ""), "", _ONE),
    (f"<function=Bash{_ARGS}</function>", "", _ONE),
    (f"[TOOL_CALLS]Bash{_ARGS}[TOOL_CALLS]Bash[ARGS]{_ARGS}\n\nWait.", "\n\nWait.", _ONE * 2),
    (f"Sure.\ncommentary to=functions.Bash <|message|>{_ARGS}", "Sure.\n", _ONE),
    (f"<minimax:tool_call>\n{_INVOKE}\n{_INVOKE}\n</minimax:tool_call>", "", _ONE * 2),
    ("<tool_call>Read</tool_call>", "", [("Read", {})]),
    ("<|tool_call_begin|>functions.Read:0<|tool_call_end|>", "", [("Read", {})]),
    (_QWEN.replace("ls", "ls</function> or"), "", [("Bash", {"command": "ls</function> or"})]),
    ('<|tool_call>call:Read{a:<|"|>x<tool_call|><|"|>}<tool_call|>', "",
     [("Read", {"a": "x<tool_call|>"})]),
    ('\n\n{"arguments": {"command": "ls"}, "name": "Bash"}\n<|im_end|>', "", _ONE),
    (f'{{"tool_calls": [{_JSON}, {_JSON}]}}', "", _ONE * 2),
    (f"Look: {HERMES}\nThen.", "Look: \nThen.", _ONE),
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
    f'[{_JSON}, {{"name": "nope", "arguments": {{}}}}]',
    "a <",
    "commentary to=nobody json{}",
    "```\n" + HERMES,
]


@pytest.mark.parametrize("text", NOT_CALLS)
def test_text_that_calls_nothing_is_left_alone(text: str) -> None:
    assert found(text) == (text, [])


def test_digits_and_broken_json_come_as_they_were_written() -> None:
    for arguments in ('{"n": 12345678901234567890.10}', "{'command': 'ls',}", '{"a": "x\ny"}'):
        text = f'<tool_call>{{"name": "Bash", "arguments": {arguments}}}</tool_call>'
        [call] = calls_of(run([text])[0])
        assert call.arguments == arguments


def test_a_value_may_explain_the_format_itself() -> None:
    value = f"Write:\n<tool_call>\n{_QWEN}\n</tool_call>\nor </parameter>."
    text = f"<function=Bash>\n<parameter=command>\n{value}\n</parameter>\n</function>"
    assert found(text) == ("", [("Bash", {"command": value})])


def test_a_name_that_may_mean_two_tools_means_none() -> None:
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


def test_text_is_held_only_as_far_as_a_mark_could_begin() -> None:
    leaks = LeakFilter(TOOLS)
    assert leaks.feed("Hello") == ["Hello"]
    assert leaks.feed(" a <b> c <tool_") == [" a <b> c "]
    assert leaks.holding
    assert leaks.feed("s and `x` [1] ]") == ["<tool_s and `x` [1] "]
    assert leaks.feed("<b") == ["]<b"]
    assert not leaks.holding
    assert leaks.feed(" " + HERMES[:-1]) == [" "]
    assert leaks.feed(">\n") == [LeakedCall("Bash", _ARGS, "hermes", HERMES)]
    assert leaks.feed("So.") == ["\nSo."]


def test_an_answer_in_json_is_let_go_at_its_first_member() -> None:
    leaks = LeakFilter(TOOLS)
    assert leaks.feed('{"city": "Par') == ['{"city": "Par']
    leaks = LeakFilter(TOOLS)
    assert leaks.feed('[{"name": "Ann"') == ['[{"name": "Ann"']


def test_a_block_over_the_bound_is_text_and_so_is_the_rest(monkeypatch: Any) -> None:
    monkeypatch.setattr(leak_block, "MAX_BLOCK", 100)
    text = f'<tool_call>{_JSON[:-3]}{"x" * 90}"}}}}</tool_call>\n{HERMES}'
    assert found(text) == (text, [])
    assert found(HERMES) == ("", [_LS])


# --- laws ---

_LOOSE = [
    "<tool_call>", "</tool_call>", "<function=Bash>", "<function=no>", "<parameter=command>",
    "</parameter>", "</function>", "<|im_end|>", "</s>", "<s>", "`", "``", "```", "~~~", "> ", "{",
    "}", "[", "]", '"', "'", "\\", "<", "<|", "word", "it`s", "; ", "to=functions.Bash", _NS, "I look.",
    "Then ", "<Bash>", "</Bash>", "<command>", "</command>", "<|eom|>", "<|start|>assistant to=user<|message|>",
    "to=self<|message|>", "<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|end_message|>",
    "<|message_model|>", "<|content_text|>", "Action: Bash\n", "Action Input: ", "functools",
]  # fmt: skip
_PIECES = [*SAMPLES.values(), _QWEN, _INVOKE, _JSON, _ARGS, *_LOOSE, *_LOOSE, "\n", "\n\n", "    "]
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


@pytest.mark.parametrize("frame", [HERMES, _QWEN, "```\nls\n```", "<tool_call>{'ls"])
def test_cost_is_linear(frame: str) -> None:
    def cost(size: int) -> float:
        text = frame.replace("ls", "ls <b> `x` \\n" * (size // 12))
        began = time.process_time()
        run([text[at : at + 4] for at in range(0, len(text), 4)])
        return time.process_time() - began

    small = min(cost(30_000) for _ in range(3))
    assert cost(240_000) < 24 * small  # eight times as long, with room for noise
