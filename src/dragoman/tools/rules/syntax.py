"""Rules for text that is not JSON, or not the JSON object that a tool needs.

Rules for characters inside strings apply while the text streams. The others apply only where the text stops
being JSON. No rule completes text that was cut.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..json_text import quote
from .rule import rule
from .tables import WRAPPER_COMPANIONS, WRAPPER_PAYLOADS, squash

_SHORT_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_WORDS = {
    "True": "true",
    "False": "false",
    "None": "null",
    "TRUE": "true",
    "FALSE": "false",
    "NULL": "null",
    "Null": "null",
    "undefined": "null",
    "NaN": "null",
    "Infinity": "null",
    "-Infinity": "null",
    "nil": "null",
}
_JSON_SCALAR = re.compile(r"-?(?:0|[1-9]\d*+)(?:\.\d++)?(?:[eE][+-]?\d++)?|true|false|null", re.ASCII)
_LOOSE_NUMBER = re.compile(r"([+-]?)0*(\d*)(?:\.(\d*))?((?:[eE][+-]?\d+)?)", re.ASCII)
_PAYLOADS = frozenset(map(squash, WRAPPER_PAYLOADS))
_COMPANIONS = frozenset(map(squash, WRAPPER_COMPANIONS))
_NOTHING = frozenset({"", "null", "None", "undefined", '""', "''", '"null"', "[]", '"[]"'})
_KEY_FIRST = re.compile(r'\s*+"(?:[^"\\]|\\.)*+"\s*+:', re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_XML_TAIL = re.compile(r"(?:\s*</[\w:.-]+>)+\s*\Z")
_FENCED = re.compile(r"\s*```[\w-]*\s*\n?(.*?)\s*```\s*\Z", re.DOTALL)


# Seen in code and terminal output: openclaw#141323 (Anthropic's fine-grained streaming), pi#6762 (ESC).
@rule("control-characters", "syntax")
def escape_control(char: str) -> str:
    r"""A raw control character inside a string is escaped.

    before-python: '{"text": "line 1\nline 2\x1b[0m"}'
    after: {"text": "line 1\nline 2\u001b[0m"}
    """
    return _SHORT_ESCAPES.get(char) or f"\\u{ord(char):04x}"


# Models write regular expressions and Windows paths without a second backslash: openclaw#141323.
@rule("illegal-escapes", "syntax")
def mend_escape(char: str) -> str:
    r"""A backslash before a character that JSON cannot escape is doubled.

    before: {"pattern": "\d+\.\w"}
    after: {"pattern": "\\d+\\.\\w"}
    """
    # `\'` is legal in Python and JavaScript. There the backslash is no part of the text.
    return "'" if char == "'" else f"\\\\{escape_control(char) if char < ' ' else char}"


@rule("code-fence", "syntax")
def strip_fence(text: str) -> str:
    r"""Arguments inside a Markdown code fence are taken out of it.

    before-python: '```json\n{"city": "Paris"}\n```'
    after: {"city": "Paris"}
    """
    found = _FENCED.match(text)
    return found.group(1) if found else text


# For a tool without parameters, servers send an empty string (qwen-code#6249), null (spring-ai#3236), or two
# quotes (Bedrock, bedrock-engineer#188).
@rule("empty-arguments", "syntax")
def is_nothing(text: str) -> bool:
    """No text, null, an empty string or an empty list becomes an empty object.

    before: null
    after: {}
    """
    return text.strip() in _NOTHING


# semantic-kernel#6106.
@rule("empty-prefix", "syntax")
def drop_placeholder(text: str) -> str:
    """An empty object or null before the real object is a placeholder of the server and is dropped.

    before: {}{"city": "Boston"}
    after: {"city": "Boston"}
    """
    for placeholder in ("{}", "null", '""'):
        rest = text.removeprefix(placeholder).lstrip()
        if rest != text and rest.startswith(("{", '"{')):
            return rest
    return text


@rule("leading-text", "syntax")
def strip_lead(text: str) -> str:
    """Prose or markup before the object is dropped.

    before: Arguments: {"city": "Boston"}
    after: {"city": "Boston"}
    """
    brace = text.find("{")
    lead = _TAG.sub("", text[: max(0, brace)])
    # With quotes or brackets before it, the brace may be inside a value.
    return text[brace:] if brace > 0 and not re.search(r'["}\]]', lead) else text


@rule("missing-opening-brace", "syntax")
def add_opening_brace(text: str) -> str:
    """A missing opening brace is added.

    before: "city": "Boston"}
    after: {"city": "Boston"}
    """
    return "{" + text if _KEY_FIRST.match(text) else text


# A sentence after the object: hermes-agent#79333. A second copy of the object: vLLM's xLAM parser.
@rule("trailing-text", "syntax")
def is_trailing(text: str) -> bool:
    """Text after the closing brace (prose, a second copy, a fence) is dropped.

    before: {"path": "a.txt"} I will read this file.
    after: {"path": "a.txt"}
    """
    return bool(text.strip())


# Arguments that were encoded twice: vllm#54964.
@rule("json-in-string", "syntax")
def read_string(value: Any) -> str | None:
    r"""Arguments encoded twice, as a JSON string of JSON, are decoded.

    before: "{\"city\": \"Rome\"}"
    after: {"city": "Rome"}
    """
    return value if isinstance(value, str) else None


@rule("list-around", "syntax")
def take_only_object(items: list[Any]) -> Any:
    """A list that contains only the arguments is unwrapped; a list of different objects is not.

    before: [{"city": "Rome"}]
    after: {"city": "Rome"}
    """
    return items[0] if items and all(item == items[0] for item in items) else None


@rule("lone-value", "syntax")
def wrap_lone_value(text: str, name: str) -> str:
    """A bare string or list becomes the member, if the tool needs exactly one member of that type.

    schema: {"properties": {"command": {"type": "string"}}, "required": ["command"]}
    before: "git status"
    after: {"command": "git status"}
    """
    return f"{{{quote(name)}: {text}}}"


# clawbolt#300.
@rule("commas", "syntax")
def comma_is_wrong(seen: int, wanted: int) -> bool:
    """A comma too many, or before a closing bracket, is dropped; a missing comma is added.

    before: {"a": 1 "b": [1, 2,],}
    after: {"a": 1, "b": [1, 2]}
    """
    return seen != wanted


# Models trained on Python write `None` and `True`: vllm-mlx#64.
@rule("words", "syntax")
def mend_word(word: str) -> str | None:
    """Python and JavaScript words and number spellings become JSON.

    before: {"deep": True, "tag": None, "n": +.5}
    after: {"deep": true, "tag": null, "n": 0.5}
    """
    if word in _WORDS:
        return _WORDS[word]
    number = _LOOSE_NUMBER.fullmatch(word)
    if not number or not (number.group(2) or number.group(3) or "0" in word):
        return None
    sign, whole, fraction, exponent = number.groups()
    return f"{'-' if sign == '-' else ''}{whole or 0}{f'.{fraction}' if fraction else ''}{exponent}"


# Replacing quotes by text replacement breaks valid apostrophes (hermes-agent#12093). So only the reader
# decides which quote ends a string.
@rule("quotes", "syntax")
def requote(text: str) -> str:
    r"""Single quotes, typographic quotes and backticks around strings become double quotes.

    before-python: '{\'title\': "it\'s", \u201cbody\u201d: \u2018x\u2019}'
    after: {"title": "it's", "body": "x"}
    """
    return text.replace('"', '\\"')


@rule("unquoted-keys", "syntax")
def quote_key(name: str) -> str:
    """A key without quotes gets them.

    before: {query: "a", limit: 2}
    after: {"query": "a", "limit": 2}
    """
    return quote(name)


@rule("unquoted-text", "syntax")
def quote_text(text: str) -> str:
    """A value without quotes that is not a number, true, false or null becomes a string.

    before: {"city": New York, "n": 1}
    after: {"city": "New York", "n": 1}
    """
    return quote(text.strip())


@rule("inner-quotes", "syntax")
def escape_quote(text: str) -> str:
    r"""A quote inside a string is escaped, if the string cannot end there.

    before: {"command": "echo "hi" there"}
    after: {"command": "echo \"hi\" there"}
    """
    return '\\"' if text == '"' else text


@rule("doubled-brace", "syntax")
def is_doubled_brace(text: str) -> bool:
    """A doubled opening brace becomes one.

    before: {{"city": "Rome"}
    after: {"city": "Rome"}
    """
    return text == "{"


@rule("comments", "syntax")
def is_comment(text: str) -> bool:
    """Comments between members are dropped.

    before: {"a": 1, /* the first */ "b": 2}
    after: {"a": 1, "b": 2}
    """
    return text.startswith(("//", "/*", "#"))


@rule("escaped-blanks", "syntax")
def is_escaped_blank(text: str) -> bool:
    r"""An escaped line break or tab between members becomes whitespace.

    before: {\n  "a": 1,\n  "b": "x"\n}
    after: {"a": 1, "b": "x"}
    """
    return "\\" in text and not text.lstrip().startswith(("//", "/*", "#"))


# The last brace is lost although the finish reason is `tool_calls`: litellm#22503. A cut call must not be
# completed like this, so the upstream must have ended the call, and the result must fit the schema.
@rule("missing-closing-brackets", "syntax")
def closing_text(value: str, closers: str | None) -> str | None:
    """Missing closing brackets are added, only if the upstream says that the call is finished.

    ended: yes
    schema: {"properties": {"query": {"type": "string"}}, "required": ["query"]}
    before: {"query": "a"
    after: {"query": "a"}
    """
    # Inside a string (`closers` is None), or before a missing key or value, the text was cut.
    if closers is None or value.rstrip().endswith((",", ":", "[", "{")):
        return None
    return closers + "}"


# `{"name": …, "arguments": {…}}`: ollama#17486. `{"arguments": "…"}`: vllm#41531. `{"input": …}`:
# anthropic-sdk-typescript#1011. A copy of the schema: Camelid#703.
@rule("wrapper", "syntax")
def find_payload(outer: Mapping[str, Any], tool: str) -> str | None:
    """An object around the arguments (name and arguments, input, a copy of the schema) is removed.

    tool: get_weather
    schema: {"properties": {"city": {"type": "string"}}, "required": ["city"]}
    before: {"name": "get_weather", "arguments": {"city": "Metz"}}
    after: {"city": "Metz"}
    """
    payloads = [
        name
        for name, value in outer.items()
        if isinstance(value, (dict, str)) and squash(name) in (*_PAYLOADS, squash(tool))
    ]
    # `function` may be the call or only its name: a member that is an object wins.
    payloads = [name for name in payloads if isinstance(outer[name], dict)] or payloads
    others = [name for name in outer if name not in payloads[:1]]
    only_companions = all(squash(name) in _COMPANIONS for name in others)
    return payloads[0] if len(payloads) == 1 and only_companions else None


def is_json_scalar(word: str) -> bool:
    """Whether a bare word is a strict JSON number, boolean or null."""
    return _JSON_SCALAR.fullmatch(word) is not None


def strip_xml_tail(text: str) -> str:
    """Remove closing tags of tool-call markup from the end of a value."""
    return _XML_TAIL.sub("", text)


def looks_like_wrapper(name: str, tool: str) -> bool:
    """Whether a member with this name may belong to an object around the arguments."""
    plain = squash(name)
    return plain in _PAYLOADS or plain in _COMPANIONS or plain == squash(tool)
