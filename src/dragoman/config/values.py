"""Readers of single config values. Each takes a TOML value and returns a typed one, or raises `InvalidValue`.

An error never repeats a value that may be a secret. It repeats only names, globs and numbers.
"""

from __future__ import annotations

import difflib
import fnmatch
import math
import re
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, cast

import msgspec

from .lines import Path as KeyPath


class InvalidValue(ValueError):
    """A value that cannot be used. The message continues a sentence that starts with the key: "must be …"."""

    def __init__(self, message: str, *below: str | int) -> None:
        super().__init__(message)
        self.message = message
        self.below: KeyPath = below
        """The path to the invalid part inside the value."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader knows besides the value."""

    upstreams: frozenset[str]
    providers: frozenset[str]
    folder: Path
    """The config file's folder. Relative paths start here."""


Read = Callable[[Any, Context], Any]

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_SIZE = re.compile(r"(\d+)\s*([KMG]i?B|B)", re.IGNORECASE)
_BYTES = {"b": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_KINDS: dict[type, str] = {
    bool: "true or false",
    str: "text",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a table",
}
_NOT_GLOB = re.compile(r"[\^$|(){}\\]")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
# The gateway or the HTTP client sets these for every request.
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "content-type"})
# The gateway writes these members of the request body itself.
_NOT_PARAMS = frozenset(
    {"model", "messages", "input", "contents", "tools", "stream", "system", "instructions"}
)


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean "…"?` with the known name closest to `name`, or an empty string."""
    found = closest(name, known)
    return f'; did you mean "{found}"?' if found else ""


def closest(name: str, known: Iterable[str]) -> str:
    """The known name closest to `name`, or an empty string."""
    by_key = {other.lower(): other for other in known}
    found = difflib.get_close_matches(name.lower(), by_key, n=1, cutoff=0.6)
    return by_key[found[0]] if found else ""


def toml_type(value: object) -> str:
    """The TOML type of `value`, for error texts."""
    return _KINDS.get(type(value), "a date or time")


def text(value: Any, context: Context) -> str:
    if not isinstance(value, str):
        raise InvalidValue(f"must be text, not {toml_type(value)}")
    if not value.strip():
        raise InvalidValue("must not be empty")
    return value.strip()


_PLACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]*")


def place_name(value: Any, context: Context) -> str:
    """A part of a host name or path: the name of a region, a project or a version."""
    name = text(value, context)
    if not _PLACE.fullmatch(name):
        raise InvalidValue("must be a name of letters, digits and dashes")
    return name


def flag(value: Any, context: Context) -> bool:
    if not isinstance(value, bool):
        raise InvalidValue(f"must be true or false, not {toml_type(value)}")
    return value


def whole_number(least: int, most: int | None = None) -> Read:
    """A reader of whole numbers within bounds."""
    bounds = f"from {least} to {most}" if most is not None else f"of at least {least}"

    def read(value: Any, context: Context) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidValue(f"must be a whole number {bounds}, not {toml_type(value)}")
        if value < least or (most is not None and value > most):
            raise InvalidValue(f"must be a whole number {bounds}, not {value}")
        return value

    return read


def number(value: Any, context: Context) -> float:
    """A finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidValue(f"must be a number, not {toml_type(value)}")
    if not math.isfinite(value) or value < 0:
        raise InvalidValue(f"must be a number of at least 0, not {value}")
    return float(value)


def duration(value: Any, context: Context) -> float:
    """Seconds, as a number or with a unit: `"500ms"`, `"15s"`, `"10m"`, `"2h"`, `"30d"`."""
    if isinstance(value, str):
        found = _DURATION.fullmatch(value.strip())
        if found is None:
            raise InvalidValue(
                'must be a number of seconds, or a time such as "500ms", "15s", "10m", "2h", "30d"'
            )
        return float(found[1]) * _SECONDS[found[2]]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidValue(f"must be a number of seconds, not {toml_type(value)}")
    return number(value, context)


def positive_duration(value: Any, context: Context) -> float:
    seconds = duration(value, context)
    if not seconds:
        raise InvalidValue("must be more than 0 seconds")
    return seconds


def positive_size(value: Any, context: Context) -> int:
    """Bytes, as a number or with a unit: `"64MB"`. At least 1."""
    return whole_number(1)(_bytes(value), context)


def size(value: Any, context: Context) -> int:
    """Bytes, as a number or with a unit. May be 0."""
    return whole_number(0)(_bytes(value), context)


def _bytes(value: Any) -> Any:
    if isinstance(value, str):
        found = _SIZE.fullmatch(value.strip())
        if found is None:
            raise InvalidValue('must be a number of bytes, or a size such as "64MB"')
        return int(found[1]) * _BYTES[found[2][0].lower()]
    return value


def regex(value: Any, context: Context) -> str:
    """A regular expression in Python's syntax."""
    pattern = text(value, context)
    try:
        # Compiled for bytes, because the redactor searches bytes.
        empty = re.compile(pattern.encode()).match(b"") is not None
    except re.error as error:
        raise InvalidValue(f'is not a regular expression: "{pattern}": {error}') from None
    if empty:
        raise InvalidValue(f'matches the empty text, so it would match everywhere: "{pattern}"')
    return pattern


def choice(*known: str) -> Read:
    """A reader of one of the `known` words."""

    def read(value: Any, context: Context) -> str:
        if not isinstance(value, str):
            raise InvalidValue(f"must be {_either(known)}, not {toml_type(value)}")
        if value not in known:
            raise InvalidValue(f'must be {_either(known)}, not "{value}"{nearest(value, known)}')
        return value

    return read


def flag_or(*known: str) -> Read:
    """A reader of true, false, or one of the `known` words."""

    def read(value: Any, context: Context) -> bool | str:
        if isinstance(value, bool) or value in known:
            return value
        raise InvalidValue(f"must be {_either(('true', 'false', *known))}, not {toml_type(value)}")

    return read


def list_of(read: Read, *, allow_single: bool = False) -> Read:
    """A reader of lists. With `allow_single`, one item without brackets is a list of one."""

    def read_all(value: Any, context: Context) -> tuple[Any, ...]:
        if not isinstance(value, list):
            if allow_single:
                return (read(value, context),)
            raise InvalidValue(f"must be a list, not {toml_type(value)}")
        found: list[Any] = []
        for index, item in enumerate(cast(list[Any], value)):
            try:
                found.append(read(item, context))
            except InvalidValue as error:
                raise InvalidValue(error.message, index, *error.below) from None
        if allow_single and not found:
            raise InvalidValue("must not be an empty list")
        return tuple(found)

    return read_all


def table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidValue(f"must be a table, not {toml_type(value)}")
    return cast(dict[str, Any], value)


def path(value: Any, context: Context) -> Path:
    """A path. `~` is the home folder; a relative path starts at the config's folder."""
    return context.folder / Path(text(value, context)).expanduser()


def glob(value: Any, context: Context) -> str:
    """A glob on model names. A regular expression is refused: as a glob, it would match nothing."""
    pattern = text(value, context)
    odd = _NOT_GLOB.search(pattern)
    if odd:
        raise InvalidValue(
            f'is not a glob: in "{pattern}", "{odd[0]}" has no meaning; use "*" for any text, "?" for one '
            "character, and a list for alternatives"
        )
    _check_brackets(pattern)
    return pattern


def has_wildcard(pattern: str) -> bool:
    return re.search(r"[*?\[]", pattern) is not None


def glob_matches(pattern: str, name: str) -> bool:
    """Does the glob match the whole name? Ignores case."""
    return fnmatch.fnmatchcase(name.lower(), pattern.lower())


def _check_brackets(pattern: str) -> None:
    at = pattern.find("[")
    while at >= 0:
        first = at + 2 if pattern[at + 1 : at + 2] == "!" else at + 1
        end = pattern.find("]", first + 1)
        if end < 0:
            raise InvalidValue(f'is not a glob: in "{pattern}", "[" has no closing "]"')
        for low, high in re.findall(r"(.)-(.)", pattern[first:end]):
            if low > high:
                raise InvalidValue(f'is not a glob: in "{pattern}", the range {low}-{high} is reversed')
        at = pattern.find("[", end + 1)


def headers(value: Any, context: Context) -> dict[str, str]:
    """Extra headers, with names in lower case."""
    found: dict[str, str] = {}
    for name, content in table(value).items():
        lower = name.lower()
        if not _HEADER.fullmatch(name) or lower in _OWN_HEADERS:
            raise InvalidValue(f'cannot set the header "{name}"', name)
        if not isinstance(content, str) or re.search(r"[\r\n\0]", content):
            raise InvalidValue(f'must set the header "{name}" to one line of text', name)
        if lower in found:
            raise InvalidValue(f'sets the header "{name}" twice', name)
        found[lower] = content
    return found


def params(value: Any, context: Context) -> dict[str, Any]:
    """Fields to set in the upstream request, named as in the upstream's protocol."""
    fields = table(value)
    for name in fields:
        if name in _NOT_PARAMS:
            raise InvalidValue(f'cannot set "{name}": Dragoman writes that field itself', name)
    return fields


def names(known: Collection[str], noun: str) -> Read:
    """A reader of lists of `known` names. `noun` says in errors what they name."""

    def read_one(value: Any, context: Context) -> str:
        name = text(value, context)
        if name not in known:
            raise InvalidValue(f'names the {noun} "{name}", which does not exist{nearest(name, known)}')
        return name

    def read(value: Any, context: Context) -> frozenset[str]:
        return frozenset(list_of(read_one)(value, context))

    return read


def _either(known: Collection[str]) -> str:
    quoted = [f'"{word}"' for word in known]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
