"""Reading JSON that a model wrote as text: where a value ends, and which call an object describes.

Nothing here decodes: the members of a call come back as the text they were written in, so numbers
keep their digits, and JSON that is not quite JSON (raw newlines, single quotes, a missing brace)
reaches whoever mends arguments untouched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

_STRUCTURE = re.compile(r"[\"'{}\[\]()]")
_IN_STRING = {'"': re.compile(r'["\\]'), "'": re.compile(r"['\\]")}
_KEY = re.compile(
    r"""[\s,]*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([A-Za-z_]\w*))\s*:\s*""",
    re.DOTALL,
)
_BETWEEN = re.compile(r"[\s,;]*")
_SCALAR = re.compile(r"[^,;}\]\s][^,;}\]\n]*")


class Balance:
    """Where a bracketed value ends, told while it arrives: brackets and strings, no grammar."""

    __slots__ = ("_depth", "_escaped", "_quote")

    def __init__(self) -> None:
        self._depth = 0
        self._quote = ""
        self._escaped = False

    @property
    def in_string(self) -> bool:
        return bool(self._quote)

    def scan(self, text: str, pos: int, end: int) -> int:
        """Reads `text[pos:end]`; the position past the bracket that closes the value, or -1."""
        while pos < end:
            if self._quote:
                pos = self._skip_string(text, pos, end)
                continue
            found = _STRUCTURE.search(text, pos, end)
            if found is None:
                return -1
            pos = found.end()
            char = text[pos - 1]
            if char in "\"'":
                self._quote = char
            elif char in "{[(":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth <= 0:
                    return pos
        return -1

    def _skip_string(self, text: str, pos: int, end: int) -> int:
        if self._escaped:
            self._escaped = False
            return pos + 1
        found = _IN_STRING[self._quote].search(text, pos, end)
        if found is None:
            return end
        if text[found.start()] == "\\":
            self._escaped = True
        else:
            self._quote = ""
        return found.end()


def members(text: str) -> dict[str, str]:
    """The members of an object, each value as it was written; what cannot be read is left out."""
    found: dict[str, str] = {}
    pos = text.find("{") + 1
    while pos and (key := _KEY.match(text, pos)):
        end = _value_end(text, key.end())
        found[key[key.lastindex or 0]] = text[key.end() : end].strip()
        pos = end
    return found


def values(text: str) -> Iterator[str]:
    """The values that stand one after the other, as in `{…}{…}`, `{…}; {…}` or inside `[…]`."""
    pos, length = 0, len(text)
    while (gap := _BETWEEN.match(text, pos)) and gap.end() < length:
        end = _value_end(text, gap.end())
        if end == gap.end():
            return
        yield text[gap.end() : end]
        pos = end


def elements(text: str) -> Iterator[str]:
    """The values of an array, each as it was written."""
    text = text.strip()
    return values(text[1:-1] if text.endswith("]") else text[1:])


def _value_end(text: str, pos: int) -> int:
    if text[pos : pos + 1] in ("{", "["):
        end = Balance().scan(text, pos, len(text))
        return end if end >= 0 else len(text)
    if text[pos : pos + 1] in ('"', "'"):
        return _string_end(text, pos)
    scalar = _SCALAR.match(text, pos)
    return scalar.end() if scalar else pos


def _string_end(text: str, pos: int) -> int:
    quote = _IN_STRING[text[pos]]
    pos += 1
    while found := quote.search(text, pos):
        if text[found.start()] != "\\":
            return found.end()
        pos = found.end() + 1
    return len(text)


def unquoted(text: str) -> str | None:
    """What a JSON (or Python) string literal says; None when `text` is none."""
    if text[:1] == "'" and text[-1:] == "'" and len(text) > 1:
        return text[1:-1]
    try:
        return msgspec.json.decode(text, type=str)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


_NAME_KEYS = ("name", "tool_name", "tool", "function_name", "function", "action")
_ARGUMENT_KEYS = (
    "arguments",
    "parameters",
    "args",
    "input",
    "params",
    "tool_input",
    "action_input",
)
# Beside name and arguments, a call may carry these; any other member makes it somebody's data.
_PLUMBING = frozenset({"id", "type", "call_id", "tool_call_id", "index"})
# {"type": "function", "function": {…}} and {"tool_calls": [{…}]}: the shapes of the APIs.
_WRAPPERS = ("tool_calls", "tool_call", "function_call", "function")
_DEEPEST = 4


class Written(msgspec.Struct, frozen=True):
    """A call as it stands in the text: its name, and its arguments as they were written."""

    name: str
    arguments: str
    # False when the arguments were gathered from loose members: good enough inside markup only.
    strict: bool = True


def written_calls(text: str) -> list[Written] | None:
    """The calls that a run of JSON values describes; None when one of them describes no call."""
    return _each(values(text), 0)


def _each(parts: Iterator[str], depth: int) -> list[Written] | None:
    calls: list[Written] = []
    for part in parts:
        found = _calls_of(part, depth)
        if not found:
            return None
        calls += found
    return calls or None


def _calls_of(value: str, depth: int) -> list[Written] | None:
    if depth > _DEEPEST:
        return None
    if value[:1] == "[":
        return _each(elements(value), depth + 1)
    if value[:1] != "{":
        return None
    found = members(value)
    for wrapper in _WRAPPERS:
        inner = found.get(wrapper, "")
        if inner[:1] in ("[", "{"):
            return _calls_of(inner, depth + 1)
    call = _call_of(found)
    return [call] if call else None


def _call_of(found: dict[str, str]) -> Written | None:
    key = next((key for key in _NAME_KEYS if unquoted(found.get(key, ""))), None)
    if key is None:
        return _keyed_by_name(found)
    name = unquoted(found.pop(key)) or ""
    arguments = next((key for key in _ARGUMENT_KEYS if key in found), None)
    rest = [other for other in found if other not in _PLUMBING and other != arguments]
    if arguments is None:
        # Some models write the arguments beside the name: {"name": "Bash", "command": "ls"}.
        loose = ",".join(f'"{other}":{found[other]}' for other in rest)
        return Written(name, f"{{{loose}}}", strict=False)
    if "description" in rest and arguments == "parameters":
        return None  # a tool's definition, echoed from the prompt
    return Written(name, _object_text(found[arguments]), strict=not rest)


def _keyed_by_name(found: dict[str, str]) -> Written | None:
    """Apertus: `{"Bash": {"command": "ls"}}`."""
    if len(found) != 1:
        return None
    name, arguments = next(iter(found.items()))
    return Written(name, arguments, strict=False) if arguments[:1] == "{" else None


def _object_text(arguments: str) -> str:
    """Arguments as the text of an object: none are `{}`, a string that holds one is opened."""
    if arguments in ("", "null", "None", '""'):
        return "{}"
    if arguments[0] != '"':
        return arguments
    inner = unquoted(arguments)
    return inner if inner is not None and inner.lstrip()[:1] == "{" else arguments
