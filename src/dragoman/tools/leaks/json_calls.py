"""Reads calls from JSON that a model wrote as text: where a value ends, and which call it describes.

Nothing is decoded: the members of a call stay the text that the model wrote. So numbers keep their digits,
and text that is nearly JSON (raw newlines, single quotes, a missing brace) reaches the corrector unchanged.
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


class BracketScanner:
    """Finds the end of a bracketed value while it arrives. It knows brackets and strings, not JSON."""

    __slots__ = ("_depth", "_escaped", "_quote")

    def __init__(self) -> None:
        self._depth = 0
        self._quote = ""
        self._escaped = False

    @property
    def in_string(self) -> bool:
        return bool(self._quote)

    def scan(self, text: str, pos: int, end: int) -> int:
        """Read `text[pos:end]`. Return the position after the bracket that closes the value, or -1."""
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
    """The members of an object, each value as it was written. Stops where the text cannot be read."""
    found: dict[str, str] = {}
    pos = text.find("{") + 1
    while pos and (key := _KEY.match(text, pos)):
        end = _value_end(text, key.end())
        found[key[key.lastindex or 0]] = text[key.end() : end].strip()
        pos = end
    return found


def values(text: str) -> Iterator[str]:
    """Values in a row, as in `{…}{…}`, `{…}; {…}` or inside `[…]`."""
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
        end = BracketScanner().scan(text, pos, len(text))
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
    """The value of a JSON or Python string literal. None if `text` is not one."""
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
# A call may have these members beside name and arguments. Any other member means that it is data.
_OTHER_KEYS = frozenset({"id", "type", "call_id", "tool_call_id", "index"})
# {"type": "function", "function": {…}} and {"tool_calls": [{…}]}: as the APIs write calls.
_WRAPPERS = ("tool_calls", "tool_call", "function_call", "function")
_MAX_DEPTH = 4


class WrittenCall(msgspec.Struct, frozen=True):
    """A call in the text: its name, and its arguments as they were written."""

    name: str
    arguments: str
    # False if the arguments were collected from members beside the name: accepted only inside markup.
    strict: bool = True


def written_calls(text: str) -> list[WrittenCall] | None:
    """The calls in a row of JSON values. None if one of the values is not a call."""
    return _each(values(text), 0)


def _each(parts: Iterator[str], depth: int) -> list[WrittenCall] | None:
    calls: list[WrittenCall] = []
    for part in parts:
        found = _calls_of(part, depth)
        if not found:
            return None
        calls += found
    return calls or None


def _calls_of(value: str, depth: int) -> list[WrittenCall] | None:
    if depth > _MAX_DEPTH:
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


def _call_of(found: dict[str, str]) -> WrittenCall | None:
    key = next((key for key in _NAME_KEYS if unquoted(found.get(key, ""))), None)
    if key is None:
        return _keyed_by_name(found)
    name = unquoted(found.pop(key)) or ""
    arguments = next((key for key in _ARGUMENT_KEYS if key in found), None)
    rest = [other for other in found if other not in _OTHER_KEYS and other != arguments]
    if arguments is None:
        # Some models write the arguments beside the name: {"name": "Bash", "command": "ls"}.
        loose = ",".join(f'"{other}":{found[other]}' for other in rest)
        return WrittenCall(name, f"{{{loose}}}", strict=False)
    if "description" in rest and arguments == "parameters":
        return None  # a tool definition that the model repeats from its prompt
    return WrittenCall(name, _object_text(found[arguments]), strict=not rest)


def _keyed_by_name(found: dict[str, str]) -> WrittenCall | None:
    """Apertus: `{"Bash": {"command": "ls"}}`."""
    if len(found) != 1:
        return None
    name, arguments = next(iter(found.items()))
    return WrittenCall(name, arguments, strict=False) if arguments[:1] == "{" else None


def _object_text(arguments: str) -> str:
    """Arguments as the text of an object. No arguments are `{}`; a string with an object in it is decoded."""
    if arguments in ("", "null", "None", '""'):
        return "{}"
    if arguments[0] != '"':
        return arguments
    inner = unquoted(arguments)
    return inner if inner is not None and inner.lstrip()[:1] == "{" else arguments
