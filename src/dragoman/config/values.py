"""Single values of a config: each reader takes what TOML gave and returns what is meant, or raises `Wrong`.

A complaint never repeats a value that could be a secret; where it does repeat one, the value is a name.
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


class Wrong(ValueError):
    """A value that cannot be used. The text goes on after the key's name: "must be …"."""

    def __init__(self, message: str, *below: str | int) -> None:
        super().__init__(message)
        self.message = message
        self.below: KeyPath = below
        """Which part of the value it is about."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader may need besides the value."""

    upstreams: frozenset[str]
    providers: frozenset[str]
    folder: Path
    """Relative paths start at the config's own folder."""


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
# Set by the gateway for every call, or belonging to the connection.
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "content-type"})
# The conversation and its form are not a parameter.
_NOT_PARAMS = frozenset(
    {"model", "messages", "input", "contents", "tools", "stream", "system", "instructions"}
)


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean "…"?` for the known name that is most like `name`, or nothing."""
    by_key = {other.lower(): other for other in known}
    found = difflib.get_close_matches(name.lower(), by_key, n=1, cutoff=0.6)
    return f'; did you mean "{by_key[found[0]]}"?' if found else ""


def kind(value: object) -> str:
    """What TOML calls this value, for complaints."""
    return _KINDS.get(type(value), "a date or time")


def text(value: Any, context: Context) -> str:
    if not isinstance(value, str):
        raise Wrong(f"must be text, not {kind(value)}")
    if not value.strip():
        raise Wrong("must not be empty")
    return value.strip()


def flag(value: Any, context: Context) -> bool:
    if not isinstance(value, bool):
        raise Wrong(f"must be true or false, not {kind(value)}")
    return value


def whole(least: int, most: int | None = None) -> Read:
    """A reader of whole numbers within bounds."""
    bounds = f"from {least} to {most}" if most is not None else f"of at least {least}"

    def read(value: Any, context: Context) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Wrong(f"must be a whole number {bounds}, not {kind(value)}")
        if value < least or (most is not None and value > most):
            raise Wrong(f"must be a whole number {bounds}, not {value}")
        return value

    return read


def number(value: Any, context: Context) -> float:
    """A number that counts something: finite and not negative."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Wrong(f"must be a number, not {kind(value)}")
    if not math.isfinite(value) or value < 0:
        raise Wrong(f"must be a number of at least 0, not {value}")
    return float(value)


def duration(value: Any, context: Context) -> float:
    """Seconds, as a number or with a unit: `"500ms"`, `"15s"`, `"10m"`, `"2h"`, `"30d"`."""
    if isinstance(value, str):
        found = _DURATION.fullmatch(value.strip())
        if found is None:
            raise Wrong('must be a number of seconds, or a time such as "500ms", "15s", "10m", "2h", "30d"')
        return float(found[1]) * _SECONDS[found[2]]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Wrong(f"must be a number of seconds, not {kind(value)}")
    return number(value, context)


def some_time(value: Any, context: Context) -> float:
    """A duration that is not nothing."""
    seconds = duration(value, context)
    if not seconds:
        raise Wrong("must be more than 0 seconds")
    return seconds


def size(value: Any, context: Context) -> int:
    """Bytes, as a number or with a unit: `"64MB"`."""
    return whole(1)(_bytes(value), context)


def size_or_none(value: Any, context: Context) -> int:
    """The same; 0 is nothing at all."""
    return whole(0)(_bytes(value), context)


def _bytes(value: Any) -> Any:
    if isinstance(value, str):
        found = _SIZE.fullmatch(value.strip())
        if found is None:
            raise Wrong('must be a number of bytes, or a size such as "64MB"')
        return int(found[1]) * _BYTES[found[2][0].lower()]
    return value


def regex(value: Any, context: Context) -> str:
    """A regular expression, as Python writes them."""
    pattern = text(value, context)
    try:
        empty = re.compile(pattern.encode()).match(b"") is not None
    except re.error as error:
        raise Wrong(f'is not a regular expression: "{pattern}": {error}') from None
    if empty:
        raise Wrong(f'fits the empty text, so it would fit everywhere: "{pattern}"')
    return pattern


def choice(*known: str) -> Read:
    """A reader of one of a few words."""

    def read(value: Any, context: Context) -> str:
        if not isinstance(value, str):
            raise Wrong(f"must be {_either(known)}, not {kind(value)}")
        if value not in known:
            raise Wrong(f'must be {_either(known)}, not "{value}"{nearest(value, known)}')
        return value

    return read


def several(read: Read, *, one_will_do: bool = False) -> Read:
    """A reader of lists; `one_will_do` takes a single item without the brackets too."""

    def read_all(value: Any, context: Context) -> tuple[Any, ...]:
        if not isinstance(value, list):
            if one_will_do:
                return (read(value, context),)
            raise Wrong(f"must be a list, not {kind(value)}")
        found: list[Any] = []
        for index, item in enumerate(cast(list[Any], value)):
            try:
                found.append(read(item, context))
            except Wrong as wrong:
                raise Wrong(wrong.message, index, *wrong.below) from None
        if one_will_do and not found:
            raise Wrong("must not be an empty list")
        return tuple(found)

    return read_all


def table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Wrong(f"must be a table, not {kind(value)}")
    return cast(dict[str, Any], value)


def path(value: Any, context: Context) -> Path:
    """A file's path: `~` is the home folder, and a relative one starts at the config's folder."""
    return context.folder / Path(text(value, context)).expanduser()


def glob(value: Any, context: Context) -> str:
    """A pattern on model names. One of another kind is refused: it would silently match nothing."""
    pattern = text(value, context)
    odd = _NOT_GLOB.search(pattern)
    if odd:
        raise Wrong(
            f'is not a glob: in "{pattern}", "{odd[0]}" has no meaning; use "*" for any text, "?" for one '
            "character, and a list for alternatives"
        )
    _check_brackets(pattern)
    return pattern


def is_wild(pattern: str) -> bool:
    """Can it fit more than one name?"""
    return re.search(r"[*?\[]", pattern) is not None


def fits(pattern: str, name: str) -> bool:
    """Does the glob fit the whole name? Case does not count."""
    return fnmatch.fnmatchcase(name.lower(), pattern.lower())


def _check_brackets(pattern: str) -> None:
    at = pattern.find("[")
    while at >= 0:
        first = at + 2 if pattern[at + 1 : at + 2] == "!" else at + 1
        end = pattern.find("]", first + 1)
        if end < 0:
            raise Wrong(f'is not a glob: in "{pattern}", "[" has no closing "]"')
        for low, high in re.findall(r"(.)-(.)", pattern[first:end]):
            if low > high:
                raise Wrong(f'is not a glob: in "{pattern}", the range {low}-{high} is the wrong way round')
        at = pattern.find("[", end + 1)


def headers(value: Any, context: Context) -> dict[str, str]:
    """Extra headers, names in lower case."""
    found: dict[str, str] = {}
    for name, content in table(value).items():
        lower = name.lower()
        if not _HEADER.fullmatch(name) or lower in _OWN_HEADERS:
            raise Wrong(f'cannot set the header "{name}"', name)
        if not isinstance(content, str) or re.search(r"[\r\n\0]", content):
            raise Wrong(f'must give the header "{name}" one line of text', name)
        if lower in found:
            raise Wrong(f'gives the header "{name}" twice', name)
        found[lower] = content
    return found


def params(value: Any, context: Context) -> dict[str, Any]:
    """Fields to set in the upstream's request, by the names of its own protocol."""
    fields = table(value)
    for name in fields:
        if name in _NOT_PARAMS:
            raise Wrong(f'cannot set "{name}": that is the request itself, not a parameter', name)
    return fields


def names(known: Collection[str], what: str) -> Read:
    """A reader of lists of known names, as a set."""

    def read_one(value: Any, context: Context) -> str:
        name = text(value, context)
        if name not in known:
            raise Wrong(f'names the {what} "{name}", which does not exist{nearest(name, known)}')
        return name

    def read(value: Any, context: Context) -> frozenset[str]:
        return frozenset(several(read_one)(value, context))

    return read


def _either(known: Collection[str]) -> str:
    quoted = [f'"{word}"' for word in known]
    return " or ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
