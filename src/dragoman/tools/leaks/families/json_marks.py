"""Formats with JSON between marks. The JSON has the name of the tool."""

from __future__ import annotations

import re

from ..heads import NAME, Head, LeakFormat, Step
from ..readers import read_arguments, read_json
from .parts import FENCE, SPACE

_ID = re.compile(r"\w*")
_HEADER = re.compile(r"[\w.:/-]*")
_OBJECT = '{"name": …, "arguments": {…}}'


def _between(name: str, models: str, mark: str, *closers: str, body: str = _OBJECT) -> LeakFormat:
    """JSON after `mark`. Some models write the mark twice, or put the JSON into a code fence."""
    steps: tuple[Step, ...] = ((mark,), SPACE, (mark, ""), SPACE, *FENCE)
    return LeakFormat(
        name=name,
        models=models,
        shape=f"{mark}{body}{closers[0] if closers else ''}",
        heads=(Head(steps, ("{", "[")),),
        read=read_json,
        closers=(("```",), closers),
    )


_LIST = f"[{_OBJECT}]"
_PYTHON = "[name(key='…')]"

_INKLING = "<|content_invoke_tool_json|>"
_GIGACHAT: tuple[Step, ...] = (
    ("<|message_sep|>",), SPACE, ("function call",), SPACE, ("<|role_sep|>",), SPACE,
)  # fmt: skip

JSON_MARKS: tuple[LeakFormat, ...] = (
    # The most common leak: hermes-agent#83023, omlx#103.
    _between("hermes", "Hermes, Qwen 2.5, Qwen 3, Granite 4, Nemotron", "<tool_call>", "</tool_call>"),
    _between("qwen-tools", "Qwen 2.5 Coder", "<tools>", "</tools>"),
    _between("function-call", "Granite 20B", "<function_call>", "</function_call>"),
    _between("functioncall", "Glaive", "<functioncall>", "</functioncall>"),
    _between("tool-calls", "Jamba, Hunyuan A13B", "<tool_calls>", "</tool_calls>", body=_LIST),
    _between("nemotron", "Nemotron Nano", "<TOOLCALL>", "</TOOLCALL>", body=_LIST),
    _between("longcat", "LongCat", "<longcat_tool_call>", "</longcat_tool_call>"),
    _between("minimax-m1", "MiniMax M1", "<minimax:tool_call>", "</minimax:tool_call>"),
    _between("granite", "Granite 3, Phi-4", "<|tool_call|>", "<|/tool_call|>", body=_LIST),
    _between("cohere", "Command", "<|START_ACTION|>", "<|END_ACTION|>", body=_LIST),
    _between("apertus", "Apertus", "<|tools_prefix|>", "<|tools_suffix|>", body='[{"name": {…}}]'),
    _between("llama", "Llama 3", "<|python_tag|>", "<|eom_id|>", "<|eot_id|>"),
    _between("llama4", "Llama 4", "<|python_start|>", "<|python_end|>", body=_PYTHON),
    _between("lfm2", "LFM2", "<|tool_call_start|>", "<|tool_call_end|>", body=_PYTHON),
    _between("mistral", "Mistral", "[TOOL_CALLS]", "[/TOOL_CALLS]", body=_LIST),
    _between("dots", "dots", "<dots_function_call>", "</dots_function_call>"),
    _between("gigachat", "GigaChat 3", "<|function_call|>"),
    LeakFormat(
        name="gigachat-role",
        models="GigaChat 3",
        shape=f"<|message_sep|>function call<|role_sep|>{_OBJECT}",
        heads=(Head(_GIGACHAT, ("{", "[")),),
        read=read_json,
    ),
    LeakFormat(
        name="internlm",
        models="InternLM 2",
        shape=f"<|action_start|><|plugin|>{_OBJECT}<|action_end|>",
        heads=(Head((("<|action_start|>",), ("<|plugin|>", ""), SPACE), ("{", "[")),),
        read=read_json,
        closers=(("<|action_end|>",),),
    ),
    LeakFormat(
        name="inkling",
        models="Inkling",
        shape=f'<|message_model|>name{_INKLING}{{"name": …, "args": {{…}}}}<|end_message|>',
        heads=(
            Head((("<|end_message|>",), SPACE, ("<|message_model|>",), _HEADER, (_INKLING,), SPACE), ("{",)),
            Head((("<|message_model|>",), _HEADER, (_INKLING,), SPACE), ("{",)),
            Head(((_INKLING,), SPACE), ("{",)),
        ),
        read=read_json,
        closers=(("<|end_message|>",), ("<|content_model_end_sampling|>",)),
    ),
    LeakFormat(
        name="mistral-named",
        models="Mistral",
        shape="[TOOL_CALLS]name[ARGS]{…}",
        heads=(
            Head((("[TOOL_CALLS]",), SPACE, NAME, ("[ARGS]", ""), SPACE), ("{",)),
            Head((("[TOOL_CALLS]",), SPACE, NAME, ("[CALL_ID]",), _ID, ("[ARGS]",)), ("{",)),
        ),
        read=read_arguments,
    ),
)
