"""Formats with special tokens around the name and the arguments."""

from __future__ import annotations

import re

from ..end_tokens import spelled
from ..gemma import quoted_by
from ..heads import NAME, Head, LeakFormat, Step
from ..markup import Markup, markup_reader
from ..readers import read_arguments, read_nameless_arguments
from .markup import INVOKE, INVOKE_ENDS, INVOKE_OPENING, INVOKE_THEN
from .parts import FENCE, SPACE

_NOISE = re.compile(r"[^<]*")

_DEEPSEEK_SECTION = spelled("<|tool_calls_begin|>")
_DEEPSEEK_CALL = spelled("<|tool_call_begin|>")
_DEEPSEEK_SEP = spelled("<|tool_sep|>")
_DEEPSEEK_ENDS = (spelled("<|tool_call_end|>"), spelled("<|tool_calls_end|>"))
_DEEPSEEK_V3: tuple[Step, ...] = (
    _DEEPSEEK_CALL, SPACE, ("function",), _DEEPSEEK_SEP, NAME, SPACE, *FENCE,
)  # fmt: skip
_DEEPSEEK_V31: tuple[Step, ...] = (_DEEPSEEK_CALL, SPACE, NAME, _DEEPSEEK_SEP, SPACE)
_STEP3: tuple[tuple[Step, ...], ...] = (
    (_DEEPSEEK_CALL, SPACE, ("function",), _DEEPSEEK_SEP, SPACE, *INVOKE_OPENING),
    (_DEEPSEEK_CALL, SPACE, *INVOKE_OPENING),
)

_KIMI_SECTION = ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>")
_KIMI_ENDS = (("<|tool_call_end|>",), ("<|tool_calls_section_end|>", "<|tool_call_section_end|>"))
_KIMI: tuple[Step, ...] = (
    ("<|tool_call_begin|>",), SPACE, NAME, SPACE, ("<|tool_call_argument_begin|>", ""), SPACE,
)  # fmt: skip

# Some quantizations of the model write only the number of the call.
_KIMI_COUNTED: tuple[Step, ...] = (
    ("<|tool_call_begin|>",), SPACE, re.compile(r"\d+"), SPACE, ("<|tool_call_argument_begin|>",), SPACE,
)  # fmt: skip

_K3_CALL: tuple[Step, ...] = (
    ("<|open|>",), ('call tool="',), NAME, ('"',), _NOISE, ("<|sep|>",), SPACE,
)  # fmt: skip
_K3_SECTION: tuple[Step, ...] = (("<|open|>tools<|sep|>", ""), SPACE)
_K3_CALLS: tuple[tuple[Step, ...], ...] = (
    (("<|open|>",), ("tools<|sep|>",), SPACE, *_K3_CALL),
    _K3_CALL,
    (("<|close|>",), ("response<|sep|>", "think<|sep|>"), SPACE, *_K3_SECTION, *_K3_CALL),
)
_K3_JSON: tuple[Step, ...] = (("<|open|>json",), _NOISE, ("<|sep|>",), SPACE)
_K3 = Markup(
    call=re.compile(r"<\|open\|>call tool=[^<]*<\|sep\|>"),
    call_ends=("<|close|>call<|sep|>",),
    parameter=re.compile(r'<\|open\|>argument key="([^"]*)"([^<]*)<\|sep\|>'),
    parameter_end=re.compile(r"<\|close\|>argument<\|sep\|>"),
)
_K3_CLOSERS = (("<|close|>tools<|sep|>",), ("<|close|>message<|sep|>",))
_K3_SHAPE = '<|open|>tools<|sep|><|open|>call tool="…"<|sep|>'

TOKENS: tuple[LeakFormat, ...] = (
    LeakFormat(
        name="deepseek",
        models="DeepSeek V3, V3.1 and R1",
        shape="<｜tool▁call▁begin｜>name<｜tool▁sep｜>{…}<｜tool▁call▁end｜>",  # noqa: RUF001
        heads=tuple(
            Head((*section, *call), ("{",))
            for call in (_DEEPSEEK_V3, _DEEPSEEK_V31)
            for section in ((_DEEPSEEK_SECTION, SPACE), ())
        ),
        read=read_arguments,
        closers=(("```",), *_DEEPSEEK_ENDS),
    ),
    LeakFormat(
        name="kimi-number",
        models="Kimi K2, if only one tool has the parameters",
        shape="<|tool_call_begin|>0<|tool_call_argument_begin|>{…}<|tool_call_end|>",
        heads=(
            Head((_KIMI_SECTION, _NOISE, *_KIMI_COUNTED), ("{",)),
            Head(_KIMI_COUNTED, ("{",)),
        ),
        read=read_nameless_arguments,
        closers=_KIMI_ENDS,
    ),
    LeakFormat(
        name="kimi",
        models="Kimi K2",
        shape="<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>",
        heads=(
            # vllm#28543: text between the begin of the section and the begin of the call.
            Head((_KIMI_SECTION, _NOISE, *_KIMI), ("{", *_KIMI_ENDS[0])),
            Head(_KIMI, ("{", *_KIMI_ENDS[0])),
        ),
        read=read_arguments,
        closers=_KIMI_ENDS,
    ),
    LeakFormat(
        name="kimi-k3",
        models="Kimi K3",
        shape=f'{_K3_SHAPE}<|open|>argument key="…" type="…"<|sep|>…<|close|>argument<|sep|>…',
        heads=tuple(Head(steps, ("<|open|>argument key=", "<|close|>call<|sep|>")) for steps in _K3_CALLS),
        read=markup_reader(_K3),
        ends=_K3.call_ends,
        closers=_K3_CLOSERS,
    ),
    LeakFormat(
        name="kimi-k3-json",
        models="Kimi K3",
        shape=f"{_K3_SHAPE}<|open|>json<|sep|>{{…}}<|close|>json<|sep|><|close|>call<|sep|>",
        heads=tuple(Head((*steps, *_K3_JSON), ("{",)) for steps in _K3_CALLS),
        read=read_arguments,
        closers=(("<|close|>json<|sep|>",), _K3.call_ends, *_K3_CLOSERS),
    ),
    LeakFormat(
        name="gemma",
        models="Gemma 4",
        shape='<|tool_call>call:name{key:<|"|>…<|"|>}<tool_call|>',
        heads=(Head((("<|tool_call>",), SPACE, ("call:",), NAME), ("{",)),),
        read=quoted_by('<|"|>'),
        ends=("<tool_call|>",),
        bounded=True,
    ),
    LeakFormat(
        name="functiongemma",
        models="FunctionGemma",
        shape="<start_function_call>call:name{key:<escape>…<escape>}<end_function_call>",
        heads=(Head((("<start_function_call>",), SPACE, ("call:",), NAME), ("{",)),),
        read=quoted_by("<escape>"),
        ends=("<end_function_call>",),
        bounded=True,
    ),
    LeakFormat(  # DeepSeek's tokens around tags with a prefix
        name="step3",
        models="Step 3",
        shape='<｜tool▁call▁begin｜>function<｜tool▁sep｜><steptml:invoke name="…">…',  # noqa: RUF001
        heads=tuple(
            Head((*section, *call), INVOKE_THEN)
            for call in _STEP3
            for section in ((_DEEPSEEK_SECTION, SPACE), ())
        ),
        read=markup_reader(INVOKE),
        ends=INVOKE_ENDS,
        closers=_DEEPSEEK_ENDS,
    ),
)
