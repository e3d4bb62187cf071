"""Parses and writes JSON without losing a digit.

Integers may have any length, and decimals keep their digits (as `Decimal`). So a value that must be
rewritten still says what the model wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, cast

_SURROGATE = re.compile("[\ud800-\udfff]")
_raw_strings = json.JSONEncoder(ensure_ascii=False)
_ascii_strings = json.JSONEncoder()

MAX_DEPTH = 100
"""The deepest nesting that is read. Functions on values recurse, with several stack frames per level."""

# Python refuses to convert longer digit strings at once: its guard against quadratic cost.
_DIGITS_AT_ONCE = 4000


class NotJson(ValueError):
    """The text is not one strict JSON value."""


def _refuse(word: str) -> Any:
    raise NotJson(f"{word} is not JSON")


def _whole(digits: str) -> int:
    if len(digits) <= _DIGITS_AT_ONCE:
        return int(digits)
    sign = -1 if digits.startswith("-") else 1
    body = digits.lstrip("-")
    number = 0
    for start in range(0, len(body), _DIGITS_AT_ONCE):
        piece = body[start : start + _DIGITS_AT_ONCE]
        number = number * 10 ** len(piece) + int(piece)
    return sign * number


_exact = json.JSONDecoder(parse_float=Decimal, parse_int=_whole, parse_constant=_refuse)
_plain = json.JSONDecoder(parse_int=_whole, parse_constant=_refuse)


def _parse(decoder: json.JSONDecoder, text: str) -> Any:
    try:
        value = decoder.decode(text)
    except RecursionError as error:
        raise NotJson("nested too deeply") from error
    except ValueError as error:
        raise NotJson(str(error)) from error
    if text.count("{") + text.count("[") > MAX_DEPTH and _is_too_deep(value):
        raise NotJson("nested too deeply")
    return value


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for outer in level for inner in _inside(outer)]
    return bool(level)


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def parse_exact(text: str) -> Any:
    """The value of strict JSON text, decimals as `Decimal`."""
    return _parse(_exact, text)


def parse_plain(text: str) -> Any:
    """The value of strict JSON text, decimals as `float`, for callers of the library."""
    return _parse(_plain, text)


def quote(text: str) -> str:
    """A JSON string literal. Half surrogate pairs are escaped: UTF-8 cannot encode them."""
    return (_ascii_strings if _SURROGATE.search(text) else _raw_strings).encode(text)


def dump(value: Any) -> str:
    """Strict JSON text of a parsed value, in the spacing most models use."""
    return "".join(_pieces(value))


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield "{"
        separator = ""
        for key, member in cast("dict[str, Any]", value).items():
            yield f"{separator}{quote(key)}: "
            yield from _pieces(member)
            separator = ", "
        yield "}"
    elif isinstance(value, list):
        yield "["
        separator = ""
        for item in cast("list[Any]", value):
            yield separator
            yield from _pieces(item)
            separator = ", "
        yield "]"
    else:
        yield _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return _digits(value)
    return json.dumps(value)


def _digits(number: int) -> str:
    if number.bit_length() <= _DIGITS_AT_ONCE * 3:
        return str(number)
    pieces: list[str] = []
    sign, number = ("-" if number < 0 else ""), abs(number)
    while number:
        number, low = divmod(number, 10**_DIGITS_AT_ONCE)
        pieces.append(str(low).zfill(_DIGITS_AT_ONCE))
    return sign + "".join(reversed(pieces)).lstrip("0")


_CUT_ESCAPE = re.compile(r"\\?u[0-9a-fA-F]{0,3}")


def readable_part(text: str) -> str:
    r"""The longest part of a broken text that can begin an object. Never a complete object.

    >>> [readable_part(t) for t in ('{"a": tr', '{"a": "b\\', '{"a": "\\u00', '{"a"')]
    ['{"a": tr', '{"a": "b\\', '{"a": "\\u00', '{"a"']
    >>> [readable_part(t) for t in ('{"a": @}', '{"a": hello', '{a', '{"a": 1}}', '[1', '{"a": 1 "b"')]
    ['{"a": ', '{"a": ', '{', '{"a": 1', '', '{"a": 1 ']
    """
    if not text.lstrip().startswith("{"):
        return ""
    try:
        _plain.decode(text)
    except json.JSONDecodeError as error:
        rest, beginning = text[error.pos :], text[: error.pos]
        if error.msg.startswith("Extra data"):
            return beginning.rstrip()[:-1]
        return text if _was_cut(error.msg, rest.strip()) else beginning
    except (ValueError, RecursionError):
        return ""
    return text.rstrip()[:-1]


def _was_cut(complaint: str, rest: str) -> bool:
    """Whether the only problem of a text is that it ends. `rest` begins where the parser stopped."""
    if complaint.startswith("Unterminated string") or not rest:
        return True
    if complaint.startswith("Invalid \\uXXXX escape"):
        return _CUT_ESCAPE.fullmatch(rest) is not None
    return complaint == "Expecting value" and any(w.startswith(rest) for w in ("true", "false", "null", "-"))
