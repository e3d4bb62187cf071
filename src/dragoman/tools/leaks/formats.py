"""The formats in which models write tool calls as text: one table, one entry each.

A format is how a block opens (literal marks, then what must follow for it to be a block at all),
how it ends, and the reader of what stands between. A new format is a new entry in FORMATS.
"""

from __future__ import annotations

import re

from .ends import spelled
from .heads import NAME, Format, Head, Step
from .readers import (
    Markup,
    markup_reader,
    quoted_by,
    read_arguments,
    read_bare_json,
    read_json,
    read_pythonic,
)

_ID = re.compile(r"\w*")
_SPACE = re.compile(r"\s*")
_QUOTE = re.compile(r"[\"']?")
_REST_OF_TAG = re.compile(r"[^<>]*")
_NOISE = re.compile(r"[^<]*")
_FENCE: tuple[Step, ...] = (("```json", "```", ""), _SPACE)


def _json_in(name: str, *marks: str, closers: tuple[str, ...] = ()) -> Format:
    """JSON that names its tool, between marks; some models write the mark twice, or fence it."""
    steps: tuple[Step, ...] = (marks, _SPACE, (*marks, ""), _SPACE, *_FENCE)
    return Format(
        name=name,
        heads=(Head(steps, ("{", "[")),),
        read=read_json,
        closers=(("```",), closers),
    )


_JSON_MARKS = (
    _json_in("hermes", "<tool_call>", closers=("</tool_call>",)),
    _json_in("qwen-tools", "<tools>", closers=("</tools>",)),  # Qwen2.5-Coder
    _json_in("function-call", "<function_call>", closers=("</function_call>",)),
    _json_in("functioncall", "<functioncall>", closers=("</functioncall>",)),
    _json_in("tool-calls", "<tool_calls>", closers=("</tool_calls>",)),  # Jamba, Hunyuan
    _json_in("nemotron", "<TOOLCALL>", closers=("</TOOLCALL>",)),
    _json_in("longcat", "<longcat_tool_call>", closers=("</longcat_tool_call>",)),
    _json_in("minimax-m1", "<minimax:tool_call>", closers=("</minimax:tool_call>",)),
    _json_in("granite", "<|tool_call|>", closers=("<|/tool_call|>",)),  # and Phi-4
    _json_in("cohere", "<|START_ACTION|>", closers=("<|END_ACTION|>",)),
    _json_in("apertus", "<|tools_prefix|>", closers=("<|tools_suffix|>",)),
    _json_in("llama", "<|python_tag|>", closers=("<|eom_id|>", "<|eot_id|>")),
    _json_in("llama4", "<|python_start|>", closers=("<|python_end|>",)),
    _json_in("lfm2", "<|tool_call_start|>", closers=("<|tool_call_end|>",)),
    _json_in("mistral", "[TOOL_CALLS]", closers=("[/TOOL_CALLS]",)),
)

_INTERNLM = Format(
    name="internlm",
    heads=(Head((("<|action_start|>",), ("<|plugin|>", ""), _SPACE), ("{", "[")),),
    read=read_json,
    closers=(("<|action_end|>",),),
)
_MISTRAL_NAMED = Format(
    name="mistral-named",
    heads=(
        Head((("[TOOL_CALLS]",), _SPACE, NAME, ("[ARGS]", ""), _SPACE), ("{",)),
        Head((("[TOOL_CALLS]",), _SPACE, NAME, ("[CALL_ID]",), _ID, ("[ARGS]",)), ("{",)),
    ),
    read=read_arguments,
)

_WRAPPERS = ("<tool_call>", "<seed:tool_call>", "<function_calls>", "<tool_calls>")
_WRAPPER_ENDS = tuple(mark.replace("<", "</") for mark in _WRAPPERS)

_QWEN = Markup(
    call=re.compile(r"<function=[\w.:/-]+>"),
    call_ends=("</function>", "</tool_call>"),
    parameter=re.compile(r"<parameter(?:=| name=)[\"']?([^<>\"']+)[\"']?[^<>]*>"),
    parameter_end=re.compile(r"</parameter>"),
    newlines=True,
)
# Qwen3-Coder drops the opening <tool_call> and still writes the closing one (ollama#16686).
_FUNCTION: tuple[Step, ...] = (("<function=",), _QUOTE, NAME, _QUOTE)
_FUNCTIONS = (_FUNCTION, (_WRAPPERS, _SPACE, *_FUNCTION))

_MINICPM = Markup(
    call=re.compile(r"<function name=[^<>]+>"),
    call_ends=("</function>", "</tool_call>"),
    parameter=re.compile(r"<param(?:eter)? name=[\"']?([^<>\"']+)[\"']?([^<>]*)>"),
    parameter_end=re.compile(r"</param(?:eter)?>"),
)
_MINICPM_OPENING: tuple[Step, ...] = (
    ("<function name=",), _QUOTE, NAME, _QUOTE, _REST_OF_TAG, (">",), _SPACE,
)  # fmt: skip

_GLM = Markup(
    call=re.compile(r"<tool_call>\s*[\w.:/-]+\s*(?=<arg_key>)"),
    call_ends=("</tool_call>",),
    parameter=re.compile(r"<arg_key>([^<>]*)</arg_key>\s*<arg_value>"),
    parameter_end=re.compile(r"</arg_value>"),
)

# Anthropic's prompt format, and those who took it over with a prefix to each tag.
_PREFIXES = ("", "antml:", "steptml:", *spelled("|DSML|"))
_INVOKES = tuple(f"<{prefix}invoke name=" for prefix in _PREFIXES)
_INVOKE_ENDS = tuple(f"</{prefix}invoke>" for prefix in _PREFIXES)
_INVOKE_WRAPPERS = tuple(
    f"<{prefix}{tag}>"
    for prefix in (*_PREFIXES, "minimax:")
    for tag in ("function_calls", "tool_calls", "tool_call")
)
_INVOKE_WRAPPER_ENDS = tuple(mark.replace("<", "</") for mark in _INVOKE_WRAPPERS)
_ANY_PREFIX = "(?:\\w+:|[|\uff5c]DSML[|\uff5c])?"
_INVOKE = Markup(
    call=re.compile(rf"<{_ANY_PREFIX}invoke name=[^<>]+>"),
    call_ends=_INVOKE_ENDS,
    parameter=re.compile(rf"<{_ANY_PREFIX}parameter name=[\"']?([^<>\"']+)[\"']?([^<>]*)>"),
    parameter_end=re.compile(rf"</{_ANY_PREFIX}parameter>"),
)
_INVOKE_OPENING: tuple[Step, ...] = (
    _INVOKES, _QUOTE, NAME, _QUOTE, _REST_OF_TAG, (">",), _SPACE,
)  # fmt: skip
_INVOKE_THEN = (
    *(f"<{prefix}parameter name=" for prefix in _PREFIXES),
    *_INVOKE_ENDS,
)

_MARKUP = (
    Format(
        name="qwen",
        heads=tuple(
            Head((*steps, (">",), _SPACE), ("<parameter=", "<parameter name=", "</function>"))
            for steps in _FUNCTIONS
        ),
        read=markup_reader(_QWEN),
        ends=_QWEN.call_ends,
        closers=(_WRAPPER_ENDS,),
    ),
    Format(  # Llama, and what Groq reports as failed_generation: <function=f{…}</function>
        name="llama-function",
        heads=tuple(Head((*steps, (">", ""), _SPACE), ("{",)) for steps in _FUNCTIONS),
        read=read_arguments,
        closers=(("</function>",), _WRAPPER_ENDS),
    ),
    Format(
        name="minicpm",
        heads=(Head(_MINICPM_OPENING, ("<param name=", "<parameter name=", "</function>")),),
        read=markup_reader(_MINICPM),
        ends=_MINICPM.call_ends,
        closers=(_WRAPPER_ENDS,),
    ),
    Format(
        name="glm",
        heads=(Head((("<tool_call>",), _SPACE, NAME, _SPACE), ("<arg_key>", "</tool_call>")),),
        read=markup_reader(_GLM),
        ends=_GLM.call_ends,
    ),
    Format(
        name="invoke",
        heads=(
            Head(_INVOKE_OPENING, _INVOKE_THEN),
            Head((_INVOKE_WRAPPERS, _SPACE, *_INVOKE_OPENING), _INVOKE_THEN),
        ),
        read=markup_reader(_INVOKE),
        ends=_INVOKE_ENDS,
        closers=(_INVOKE_WRAPPER_ENDS,),
    ),
)

_DEEPSEEK_SECTION = spelled("<|tool_calls_begin|>")
_DEEPSEEK_CALL = spelled("<|tool_call_begin|>")
_DEEPSEEK_SEP = spelled("<|tool_sep|>")
_DEEPSEEK_ENDS = (spelled("<|tool_call_end|>"), spelled("<|tool_calls_end|>"))
_DEEPSEEK_V3: tuple[Step, ...] = (
    _DEEPSEEK_CALL, _SPACE, ("function",), _DEEPSEEK_SEP, NAME, _SPACE, *_FENCE,
)  # fmt: skip
_DEEPSEEK_V31: tuple[Step, ...] = (_DEEPSEEK_CALL, _SPACE, NAME, _DEEPSEEK_SEP, _SPACE)

_KIMI_SECTION = ("<|tool_calls_section_begin|>", "<|tool_call_section_begin|>")
_KIMI_ENDS = (("<|tool_call_end|>",), ("<|tool_calls_section_end|>", "<|tool_call_section_end|>"))
_KIMI: tuple[Step, ...] = (
    ("<|tool_call_begin|>",), _SPACE, NAME, _SPACE, ("<|tool_call_argument_begin|>", ""), _SPACE,
)  # fmt: skip

_TOKENS = (
    Format(
        name="deepseek",
        heads=(
            Head((_DEEPSEEK_SECTION, _SPACE, *_DEEPSEEK_V3), ("{",)),
            Head(_DEEPSEEK_V3, ("{",)),
            Head((_DEEPSEEK_SECTION, _SPACE, *_DEEPSEEK_V31), ("{",)),
            Head(_DEEPSEEK_V31, ("{",)),
        ),
        read=read_arguments,
        closers=(("```",), *_DEEPSEEK_ENDS),
    ),
    Format(
        name="kimi",
        heads=(
            # vllm#28543: words between the section's begin and the call's.
            Head((_KIMI_SECTION, _NOISE, *_KIMI), ("{", *_KIMI_ENDS[0])),
            Head(_KIMI, ("{", *_KIMI_ENDS[0])),
        ),
        read=read_arguments,
        closers=_KIMI_ENDS,
    ),
    Format(
        name="gemma",
        heads=(Head((("<|tool_call>",), _SPACE, ("call:",), NAME), ("{",)),),
        read=quoted_by('<|"|>'),
        ends=("<tool_call|>",),
    ),
    Format(
        name="functiongemma",
        heads=(Head((("<start_function_call>",), _SPACE, ("call:",), NAME), ("{",)),),
        read=quoted_by("<escape>"),
        ends=("<end_function_call>",),
    ),
    Format(  # Step3: DeepSeek's frame around prefixed tags
        name="step3",
        heads=(
            Head(
                (
                    _DEEPSEEK_SECTION,
                    _SPACE,
                    _DEEPSEEK_CALL,
                    _SPACE,
                    ("function",),
                    _DEEPSEEK_SEP,
                    _SPACE,
                    *_INVOKE_OPENING,
                ),
                _INVOKE_THEN,
            ),
        ),
        read=markup_reader(_INVOKE),
        ends=_INVOKE_ENDS,
        closers=_DEEPSEEK_ENDS,
    ),
)

_HARMONY_MESSAGE: tuple[Step, ...] = (
    _SPACE, ("<|constrain|>", ""), ("json", "code", ""), _SPACE, ("<|message|>", ""), _SPACE,
)  # fmt: skip
_HARMONY_CHANNEL = ("commentary", "analysis")
_HARMONY_CLOSERS = (("<|call|>", "<|end|>"),)

_HARMONY = (
    Format(
        name="harmony",
        heads=(
            *(
                Head((*start, _HARMONY_CHANNEL, _SPACE, ("to=",), NAME, *_HARMONY_MESSAGE), ("{",))
                for start in ((("<|channel|>",),), (("<|start|>",), ("assistant<|channel|>",)))
            ),
            Head(
                (
                    ("<|start|>",),
                    ("assistant to=",),
                    NAME,
                    _SPACE,
                    ("<|channel|>",),
                    _HARMONY_CHANNEL,
                    *_HARMONY_MESSAGE,
                ),
                ("{",),
            ),
        ),
        read=read_arguments,
        closers=_HARMONY_CLOSERS,
    ),
    Format(  # its tokens already taken out by a server that knew them, but not the calls
        name="harmony-stripped",
        heads=(
            Head(
                (
                    ("assistantcommentary to=", "commentary to=", "to=functions."),
                    NAME,
                    *_HARMONY_MESSAGE,
                ),
                ("{",),
            ),
        ),
        read=read_arguments,
        closers=_HARMONY_CLOSERS,
        place="line",
    ),
)

_NAME_KEYS = ('"name"', '"tool_name"', '"tool"', '"function_name"', '"function"')
_ARGUMENT_KEYS = ('"arguments"', '"parameters"', '"args"', '"input"')
_OPEN_OBJECT: tuple[Step, ...] = (("{", "["), re.compile(r"[\s{]*"))
_COLON: tuple[Step, ...] = (_SPACE, (":",), _SPACE)


def _bare(*steps: Step) -> Head:
    return Head((*_OPEN_OBJECT, *steps), whole=True)


# An answer in JSON is mostly an answer: these heads let it pass as soon as its first member shows
# that it calls nothing, or nothing that is declared.
_BARE = (
    Format(
        name="json",
        heads=(
            _bare(_NAME_KEYS, *_COLON, ('"',), NAME, ('"',)),
            _bare(('"type"',), *_COLON, ('"function"', '"function_call"', '"tool_use"')),
            _bare(('"function"', '"function_call"', '"tool_call"'), *_COLON, ("{",)),
            _bare(('"tool_calls"',), *_COLON, ("[",)),
            _bare(_ARGUMENT_KEYS, *_COLON, ("{",)),
            _bare(('"id"',), *_COLON, ('"call', '"tool')),
        ),
        read=read_bare_json,
        place="answer",
        whole=True,
    ),
    Format(
        name="pythonic-list",
        heads=(Head((("[",), _SPACE, NAME, _SPACE, ("(",)), whole=True),),
        read=read_pythonic,
        place="answer",
        whole=True,
    ),
    Format(
        name="functools",  # Phi-4-mini
        heads=(Head((("functools",), _SPACE), ("[",)),),
        read=read_json,
        place="answer",
    ),
)

FORMATS: tuple[Format, ...] = (
    *_JSON_MARKS,
    _INTERNLM,
    _MISTRAL_NAMED,
    *_MARKUP,
    *_TOKENS,
    *_HARMONY,
    *_BARE,
)
