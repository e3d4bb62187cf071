"""Formats in XML-like markup: a call is an element, and its parameters are elements in it."""

from __future__ import annotations

import re

from ..heads import KEY, NAME, TAG, Head, LeakFormat, Step
from ..markup import BLANKS, Markup, markup_reader
from ..readers import read_arguments, read_python_lines, read_valid_arguments
from ..tags import read_tagged, tag_reader
from .parts import QUOTE, SPACE, closing, named_tag

_WRAPPERS = ("<tool_call>", "<seed:tool_call>", "<function_calls>", "<tool_calls>")
_WRAPPER_ENDS = closing(*_WRAPPERS)

_QWEN = Markup(
    call=re.compile(r"<function=[\w.:/-]+>"),
    call_ends=("</function>", "</tool_call>"),
    parameter=re.compile(r"<parameter(?:=| name=)[\"']?([^<>\"']+)[\"']?[^<>]*>"),
    parameter_end=re.compile(r"</parameter>"),
    newlines=True,
)
# Qwen3-Coder drops the opening <tool_call> and still writes the closing one (ollama#16686).
_FUNCTION: tuple[Step, ...] = (("<function=",), QUOTE, NAME, QUOTE)
_FUNCTIONS = (_FUNCTION, (_WRAPPERS, SPACE, *_FUNCTION))

# Some servers lose the blank in a tag, or show it as the tokenizer's sign for a blank.
_BLANKS = (" ", "", "\u0120")
_MINICPM = Markup(
    call=re.compile(r"<function[ \u0120]?name=[^<>]+>"),
    call_ends=("</function>", "</tool_call>"),
    parameter=re.compile(r"<param(?:eter)?[ \u0120]?name=[\"']?([^<>\"']+)[\"']?([^<>]*)>"),
    parameter_end=re.compile(r"</param(?:eter)?>"),
)
_MINICPM_OPENING = named_tag(*(f"<function{blank}name=" for blank in _BLANKS))
_MINICPM_THEN = tuple(f"<param{rest}{blank}name=" for rest in ("", "eter") for blank in _BLANKS)

# vllm-mlx#42.
_GLM = Markup(
    call=re.compile(rf"<tool_call>\s*[\w.:/-]+{BLANKS}(?:<tool_sep>{BLANKS})?(?=<arg_key>)"),
    call_ends=("</tool_call>",),
    parameter=re.compile(rf"<arg_key>([^<>]*)</arg_key>{BLANKS}<arg_value>"),
    parameter_end=re.compile(r"</arg_value>"),
    valueless=re.compile(r"<arg_key>[^<>]*</arg_key>"),
)
_GLM_SPACE = re.compile(rf"{BLANKS}(?:\\\Z)?")
_GLM_CALL: tuple[Step, ...] = (("<tool_call>",), SPACE, NAME, _GLM_SPACE, ("<tool_sep>", ""), _GLM_SPACE)

# Anthropic's prompt format. Other models use it with a prefix in each tag. DeepSeek's prefix has one or
# two bars (full-width, plain or double), and sometimes a blank after it.
_BARS = ("\uff5c", "|", "\u2016", "\uff5c\uff5c", "||")
_DSML = tuple(f"{bars}DSML{bars}{blank}" for bars in _BARS for blank in ("", " "))
_PREFIXES = ("", "antml:", "steptml:", *_DSML)
_INVOKES = tuple(f"<{prefix}invoke name=" for prefix in _PREFIXES)
INVOKE_ENDS = tuple(f"</{prefix}invoke>" for prefix in _PREFIXES)
_INVOKE_WRAPPERS = (
    *(
        f"<{prefix}{tag}>"
        for prefix in (*_PREFIXES, "minimax:")
        for tag in ("function_calls", "tool_calls", "tool_call")
    ),
    *(f"<{prefix}calls>" for prefix in _DSML),
    "<dots_function_call>",
)
_INVOKE_WRAPPER_ENDS = closing(*_INVOKE_WRAPPERS)
_ANY_PREFIX = "(?:\\w+:|[|\uff5c\u2016]{1,2}DSML[|\uff5c\u2016]{1,2} ?)?"
INVOKE = Markup(
    call=re.compile(rf"<{_ANY_PREFIX}invoke name=[^<>]+>"),
    call_ends=INVOKE_ENDS,
    parameter=re.compile(rf"<{_ANY_PREFIX}parameter name=[\"']?([^<>\"']+)[\"']?([^<>]*)>"),
    parameter_end=re.compile(rf"</{_ANY_PREFIX}parameter>"),
)
INVOKE_OPENING = named_tag(*_INVOKES)
INVOKE_THEN = (*(f"<{prefix}parameter name=" for prefix in _PREFIXES), *INVOKE_ENDS)
_INVOKE_EMPTY: tuple[Step, ...] = (_INVOKES, QUOTE, NAME, QUOTE, SPACE, ("/>",))

_MUSE = Markup(
    call=re.compile(r"<atem:invoke name=[^<>]+>"),
    call_ends=("</atem:invoke>",),
    parameter=re.compile(r"<atem:parameter name=[\"']?([^<>\"']+)[\"']?([^<>]*)>"),
    parameter_end=re.compile(r"</atem:parameter>"),
)
_MUSE_INVOKE = named_tag("<atem:invoke name=")
_MUSE_THEN = ("<atem:parameter name=", "</atem:invoke>")
_MUSE_TO: tuple[Step, ...] = (
    NAME, ("<|message|>",), SPACE, ("<atem:function_calls>",), SPACE, *_MUSE_INVOKE,
)  # fmt: skip
_MUSE_CLOSERS = (("</atem:function_calls>",), ("<|eom|>", "<|eot|>"))
_MUSE_SHAPE = '<atem:invoke name="…"><atem:parameter name="…">…'

_M3 = "]<]minimax[>["
_M3_INVOKE: tuple[Step, ...] = named_tag("<invoke name=")[:-1]
_TOOL_CALL = ("<tool_call>",)

MARKUP: tuple[LeakFormat, ...] = (
    LeakFormat(
        name="qwen",
        models="Qwen 3 Coder, Nemotron 3, Seed-OSS, Step 3.5, Ling 3",
        shape="<tool_call><function=name><parameter=key>…</parameter></function></tool_call>",
        heads=tuple(
            Head((*steps, (">",), SPACE), ("<parameter=", "<parameter name=", "</function>"))
            for steps in _FUNCTIONS
        ),
        read=markup_reader(_QWEN),
        ends=_QWEN.call_ends,
        closers=(_WRAPPER_ENDS,),
    ),
    LeakFormat(  # also what Groq reports as failed_generation
        name="llama-function",
        models="Llama 3, Llama 4",
        shape="<function=name>{…}</function>",
        heads=tuple(Head((*steps, (">", ""), SPACE), ("{",)) for steps in _FUNCTIONS),
        read=read_arguments,
        closers=(("</function>",), _WRAPPER_ENDS),
    ),
    LeakFormat(
        name="minicpm",
        models="MiniCPM 5",
        shape='<function name="…"><param name="…">…</param></function>',
        heads=(Head(_MINICPM_OPENING, (*_MINICPM_THEN, "</function>")),),
        read=markup_reader(_MINICPM),
        ends=_MINICPM.call_ends,
        closers=(_WRAPPER_ENDS,),
    ),
    LeakFormat(
        name="glm",
        models="GLM 4.5, GLM 4.7, Hunyuan 3, Poolside",
        shape="<tool_call>name<arg_key>…</arg_key><arg_value>…</arg_value></tool_call>",
        heads=tuple(
            Head((*wrapper, *_GLM_CALL), ("<arg_key>", "</tool_call>"))
            for wrapper in ((), (("<tool_calls>",), SPACE))
        ),
        read=markup_reader(_GLM),
        ends=_GLM.call_ends,
        closers=(("</tool_calls>",),),
    ),
    LeakFormat(
        name="invoke",
        models="Claude's prompt format, DeepSeek V3.2 and V4 (DSML), MiniMax M2, dots",
        shape='<function_calls><invoke name="…"><parameter name="…">…</parameter></invoke></function_calls>',
        heads=(
            Head(INVOKE_OPENING, INVOKE_THEN),
            Head((_INVOKE_WRAPPERS, SPACE, *INVOKE_OPENING), INVOKE_THEN),
        ),
        read=markup_reader(INVOKE),
        ends=(*INVOKE_ENDS, *_INVOKE_WRAPPER_ENDS),
        closers=(_INVOKE_WRAPPER_ENDS,),
    ),
    LeakFormat(
        name="invoke-empty",
        models="DeepSeek V3.2 and V4 (DSML)",
        shape='<function_calls><invoke name="…"/></function_calls>',
        heads=(
            Head(_INVOKE_EMPTY),
            Head((_INVOKE_WRAPPERS, SPACE, *_INVOKE_EMPTY)),
        ),
        read=read_arguments,
        closers=(_INVOKE_WRAPPER_ENDS,),
        empty=True,
    ),
    LeakFormat(
        name="olmo",
        models="OLMo 3",
        shape="<function_calls>name(key='…')</function_calls>",
        heads=(Head((("<function_calls>",), SPACE, NAME, SPACE, ("(",)), body=2),),
        read=read_python_lines,
        ends=("</function_calls>",),
        bounded=True,
    ),
    LeakFormat(
        name="minimax-m3",
        models="MiniMax M3",
        shape=f'{_M3}<tool_call>{_M3}<invoke name="…">{_M3}<key>…{_M3}</key>{_M3}</invoke>{_M3}</tool_call>',
        heads=(
            Head(((_M3,), SPACE, _TOOL_CALL, SPACE, (_M3, ""), SPACE, *_M3_INVOKE)),
            Head(((_M3,), SPACE, *_M3_INVOKE)),
            Head((_TOOL_CALL, SPACE, (_M3,), SPACE, *_M3_INVOKE)),
        ),
        read=tag_reader(_M3),
        ends=(f"{_M3}</invoke>", "</invoke>"),
        closers=((f"{_M3}</tool_call>", f"{_M3}\n</tool_call>", "</tool_call>"),),
    ),
    LeakFormat(  # without the token that names the recipient, the markup is only an example
        name="muse",
        models="Muse Glimmer",
        shape=f"<|start|>assistant to=name<|message|><atem:function_calls>{_MUSE_SHAPE}",
        heads=tuple(
            # A message of text ends with <|eom|>, so a <|start|> inside it is only an example.
            Head((*start, ("assistant to=",), *_MUSE_TO), _MUSE_THEN, outside=len(start) == 1)
            for start in ((("<|start|>",),), (("<|eom|>",), SPACE, ("<|start|>",)))
        ),
        read=markup_reader(_MUSE),
        ends=_MUSE.call_ends,
        closers=_MUSE_CLOSERS,
    ),
    LeakFormat(  # the prompt ended with <|start|>assistant
        name="muse-first",
        models="Muse Glimmer",
        shape=f"to=name<|message|><atem:function_calls>{_MUSE_SHAPE}",
        heads=(Head((("to=",), *_MUSE_TO), _MUSE_THEN),),
        read=markup_reader(_MUSE),
        ends=_MUSE.call_ends,
        closers=_MUSE_CLOSERS,
        place="answer",
    ),
    LeakFormat(
        name="muse-next",
        models="Muse Glimmer",
        shape=f"{_MUSE_SHAPE}",
        heads=(Head(_MUSE_INVOKE, _MUSE_THEN),),
        read=markup_reader(_MUSE),
        ends=_MUSE.call_ends,
        closers=_MUSE_CLOSERS,
        place="call",
    ),
    LeakFormat(
        name="tagged",
        models="Cline's and Roo Code's prompt format",
        shape="<name><key>…</key></name>",
        heads=(
            Head((("<",), TAG, (">",), SPACE, ("<",), KEY, (">",)), body=4),
            Head((("<",), TAG, (">",), SPACE, ("</",), TAG, (">",)), body=4),
        ),
        read=read_tagged,
        ends=("</{name}>",),
        place="tag",
    ),
    LeakFormat(
        name="tagged-json",
        models="Llama, Mistral and others, prompted for XML",
        shape="<name>{…}</name>",
        heads=(Head((("<",), TAG, (">",), SPACE), ("{",)),),
        read=read_valid_arguments,
        closers=(("</{name}>",),),
        place="tag",
    ),
)
