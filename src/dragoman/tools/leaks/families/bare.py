"""Formats with almost no markup: JSON, Python, a word at the beginning of a line."""

from __future__ import annotations

import re

from ..heads import NAME, Head, LeakFormat, Step
from ..readers import read_arguments, read_bare_json, read_json, read_only_argument, read_pythonic
from .parts import COLON, SPACE

_NAME_KEYS = ('"name"', '"tool_name"', '"tool"', '"function_name"', '"function"')
_ARGUMENT_KEYS = ('"arguments"', '"parameters"', '"args"', '"input"')
_OPEN_OBJECT: tuple[Step, ...] = (("{", "["), re.compile(r"[\s{]*"))
_ACTION = ("Action:", "**Action:**", "**Action**:")
_BLANKS = re.compile(r"[ \t]*")
_INPUT = ("Action Input:", "**Action Input:**", "**Action Input**:")


def _bare(*steps: Step) -> Head:
    return Head((*_OPEN_OBJECT, *steps), body=0)


# Most answers in JSON are answers, not calls. These heads let an answer pass as soon as its first member
# shows that it is no call of a declared tool.
BARE: tuple[LeakFormat, ...] = (
    LeakFormat(
        name="json",
        models="Llama 3, xLAM, ERNIE and others; on the last lines of the answer",
        shape='{"name": …, "arguments": {…}}',
        heads=(
            _bare(_NAME_KEYS, *COLON, ('"',), NAME, ('"',)),
            _bare(('"type"',), *COLON, ('"function"', '"function_call"', '"tool_use"')),
            _bare(('"function"', '"function_call"', '"tool_call"'), *COLON, ("{",)),
            _bare(('"tool_calls"',), *COLON, ("[",)),
            _bare(_ARGUMENT_KEYS, *COLON, ("{",)),
            _bare(('"id"',), *COLON, ('"call', '"tool')),
        ),
        read=read_bare_json,
        place="line",
        whole=True,
    ),
    LeakFormat(
        name="pythonic-list",
        models="Llama 4, Llama 3.2, ToolACE; on the last lines of the answer",
        shape="[name(key='…')]",
        heads=(Head((("[",), SPACE, NAME, SPACE, ("(",)), body=0),),
        read=read_pythonic,
        place="line",
        whole=True,
        bounded=True,
    ),
    LeakFormat(
        name="functools",
        models="Phi-4 mini; on a line of its own",
        shape='functools[{"name": …, "arguments": {…}}]',
        heads=(Head((("functools",), SPACE), ("[",)),),
        read=read_json,
        place="line",
    ),
    LeakFormat(
        name="react",
        models="any model prompted for ReAct; on lines of its own",
        shape="Action: name\nAction Input: {…}",
        heads=(Head((_ACTION, SPACE, NAME, SPACE, _INPUT, SPACE), ("{",)),),
        read=read_arguments,
        place="line",
    ),
    LeakFormat(
        name="react-json",
        models="any model prompted for LangChain's structured chat; on lines of its own",
        shape='Action:\n```\n{"action": …, "action_input": {…}}\n```',
        heads=(Head((_ACTION, SPACE, ("```json", "```"), SPACE, ("{",)), body=4),),
        read=read_json,
        closers=(("```",),),
        place="line",
    ),
    LeakFormat(
        name="react-text",
        models="any model prompted for ReAct, for tools with one parameter; on lines of its own",
        shape="Action: name\nAction Input: …",
        heads=(Head((_ACTION, SPACE, NAME, SPACE, _INPUT, _BLANKS)),),
        read=read_only_argument,
        ends=("\n",),
        place="line",
    ),
)
