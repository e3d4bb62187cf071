"""Runs the filter of leaked calls, and has one call, `Bash(command="ls")`, in every format."""

import json
from typing import Any

from dragoman.tools.leaks import LeakedCall, LeakFilter, Segment

_BASH = {"type": "object", "properties": {"command": {"type": "string"}}}
TOOLS: dict[str, Any] = {"Bash": _BASH, "Read": None, "mcp__docs__find": None}


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
    """The remaining text and the calls. Asserts that the result is the same character by character."""
    segments, dropped = run([text], tools)
    assert run(list(text), tools) == (segments, dropped)
    raw = "".join(s if isinstance(s, str) else s.raw for s in segments)
    assert raw + dropped == text
    calls = calls_of(segments)
    return text_of(segments), [(c.name, json.loads(c.arguments, strict=False)) for c in calls]


HERMES = '<tool_call>{"name": "Bash", "arguments": {"command": "ls"}}</tool_call>'
LS = ("Bash", {"command": "ls"})
QWEN = "<function=Bash>\n<parameter=command>\nls\n</parameter>\n</function>"
INVOKE = '<invoke name="Bash">\n<parameter name="command">ls</parameter>\n</invoke>'
JSON = '{"name": "Bash", "arguments": {"command": "ls"}}'
ARGS = '{"command": "ls"}'
_STEP = INVOKE.replace("<", "<steptml:").replace("steptml:/", "/steptml:")
_ATEM = _STEP.replace("steptml", "atem")
NS = "]<]minimax[>["
_K3 = '<|open|>tools<|sep|><|open|>call tool="Bash" index="1"<|sep|>'

SAMPLES = {
    "hermes": HERMES,
    "qwen-tools": f"<tools>\n{JSON}\n</tools>",
    "function-call": f"<function_call>{JSON}</function_call>",
    "functioncall": f"<functioncall> {JSON}",
    "tool-calls": f"<tool_calls>[{JSON}]</tool_calls>",
    "nemotron": f"<TOOLCALL>[{JSON}]</TOOLCALL>",
    "longcat": f"<longcat_tool_call>{JSON}</longcat_tool_call>",
    "minimax-m1": f"<minimax:tool_call>\n{JSON}\n</minimax:tool_call>",
    "granite": f"<|tool_call|>[{JSON}]",
    "cohere": f'<|START_ACTION|>[{{"tool_name": "Bash", "parameters": {ARGS}}}]<|END_ACTION|>',
    "internlm": f"<|action_start|><|plugin|>\n{JSON}<|action_end|>",
    "apertus": f'<|tools_prefix|>[{{"Bash": {ARGS}}}]<|tools_suffix|>',
    "llama": f'<|python_tag|>{{"name": "Bash", "parameters": {ARGS}}}<|eom_id|>',
    "llama4": "<|python_start|>[Bash(command='ls')]<|python_end|>",
    "lfm2": "<|tool_call_start|>[Bash(command='ls')]<|tool_call_end|>",
    "mistral": f"[TOOL_CALLS] [{JSON}]",
    "mistral-named": f"[TOOL_CALLS]Bash[CALL_ID]a1[ARGS]{ARGS}",
    "qwen": f"<tool_call>\n{QWEN}\n</tool_call>",
    "llama-function": f"<function=Bash>{ARGS}</function>",
    "minicpm": '<function name="Bash"><param name="command">ls</param></function>',
    "glm": "<tool_call>Bash\n<arg_key>command</arg_key>\n<arg_value>ls</arg_value>\n</tool_call>",
    "invoke": f"<function_calls>\n{INVOKE}\n</function_calls>",
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>Bash<｜tool▁sep｜>"  # noqa: RUF001
    + ARGS
    + "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",  # noqa: RUF001
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.Bash:0"
    f"<|tool_call_argument_begin|>{ARGS}<|tool_call_end|><|tool_calls_section_end|>",
    "gemma": '<|tool_call>call:Bash{command:<|"|>ls<|"|>}<tool_call|>',
    "functiongemma": "<start_function_call>call:Bash{command:<escape>ls<escape>}<end_function_call>",
    "step3": f"<|tool_calls_begin|><|tool_call_begin|>function<|tool_sep|>{_STEP}"
    "<|tool_call_end|><|tool_calls_end|>",
    "harmony": "<|start|>assistant<|channel|>commentary to=functions.Bash <|constrain|>json"
    f"<|message|>{ARGS}<|call|>",
    "harmony-stripped": f"commentary to=functions.Bash json{ARGS}",
    "json": f'{{"type": "function", "function": {JSON}}}',
    "pythonic-list": "[Bash(command='ls')]",
    "functools": f"functools[{JSON}]",
    "dots": f"<dots_function_call>{JSON}</dots_function_call>",
    "kimi-number": f"<|tool_call_begin|>0<|tool_call_argument_begin|>{ARGS}<|tool_call_end|>",
    "gigachat": f"<|function_call|>{JSON}",
    "gigachat-role": f"<|message_sep|>\n\nfunction call<|role_sep|>\n{JSON}",
    "inkling": '<|message_model|>Bash<|content_invoke_tool_json|>{"name": "Bash", "args": '
    f"{ARGS}}}<|end_message|>",
    "kimi-k3": f'{_K3}<|open|>argument key="command" type="string"<|sep|>ls<|close|>argument<|sep|>'
    "<|close|>call<|sep|><|close|>tools<|sep|>",
    "kimi-k3-json": f"{_K3}<|open|>json<|sep|>{ARGS}<|close|>json<|sep|><|close|>call<|sep|>",
    "minimax-m3": f'{NS}<tool_call>\n{NS}<invoke name="Bash">{NS}<command>ls{NS}</command>'
    f"{NS}</invoke>\n{NS}</tool_call>",
    "muse": f"<|start|>assistant to=Bash.Bash<|message|><atem:function_calls>{_ATEM}</atem:function_calls>",
    "muse-first": f" to=Bash<|message|><atem:function_calls>\n{_ATEM}\n</atem:function_calls>",
    "olmo": "<function_calls>Bash(command='ls')</function_calls>",
    "react": f"Action: Bash\nAction Input: {ARGS}",
    "react-json": f'Action:\n```json\n{{"action": "Bash", "action_input": {ARGS}}}\n```',
    "react-text": "Action: Bash\nAction Input: ls\n",
    "tagged": "<Bash>\n<command>ls</command>\n</Bash>",
    "tagged-json": f"<Bash>{ARGS}</Bash>",
}


# These have no arguments, or no opening mark.
OTHERS = {
    "invoke-empty": ('<function_calls><invoke name="Read"/></function_calls>', [("Read", {})]),
    "muse-next": (
        SAMPLES["muse"].removesuffix("</atem:function_calls>") + f"{_ATEM}</atem:function_calls>",
        [LS, LS],
    ),
}
