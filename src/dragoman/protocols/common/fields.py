"""Typed access to a client's decoded JSON. An error names the path of the wrong field.

Paths are joined only for an error, so a valid field costs one lookup and one type check.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn, TypeGuard, TypeVar

import msgspec

from ...model.errors import BadRequest
from ...wire import surrogates

T = TypeVar("T")
Obj = dict[str, Any]
Body = bytes | bytearray
"""A request body as the client sent it."""

_WORDS: dict[type, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "a boolean",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


def is_object(value: Any) -> TypeGuard[Obj]:
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def reject(message: str, where: str, key: str = "") -> NoReturn:
    raise BadRequest(message, join(where, key) if key else where)


def word(value: object) -> str:
    """The type of `value` in words, for error messages."""
    return _WORDS.get(type(value), type(value).__name__)


def parse_object(body: Body) -> Obj:
    """Decode a request body, which must be one JSON object."""
    try:
        value = decode_json(body)
    except ValueError as error:
        raise BadRequest(f"the request body is not valid JSON: {error}") from None
    except RecursionError:
        raise BadRequest("the request body is nested too deeply") from None
    return as_object(value, "the request body")


def decode_json(text: str | Body) -> Any:
    r"""Decode JSON of any client. Raises ValueError if it is invalid.

    JavaScript clients that cut a string inside a surrogate pair write `"\ud83d"`. UTF-8 cannot encode a lone
    surrogate, so it is replaced.
    """
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        if b"\\ud" not in data.lower():
            raise
        return surrogates.replace_lone_surrogates(json.loads(data, parse_constant=_no_json))


def _no_json(constant: str) -> NoReturn:
    """Python's decoder accepts NaN and Infinity, but JSON does not."""
    raise ValueError(f"{constant} is not JSON")


def as_object(value: Any, where: str) -> Obj:
    if not is_object(value):
        reject(f"expected an object, got {word(value)}", where)
    return value


# The functions below use `type is`, not isinstance: to Python, True is an int, but to JSON it is not.


def _wrong(value: object, kind: type, where: str, key: str) -> NoReturn:
    reject(f"expected {_WORDS[kind]}, got {word(value)}", where, key)


def need_string(obj: Obj, key: str, where: str) -> str:
    value: Any = obj.get(key)
    if type(value) is str:
        return value
    if value is None:
        reject("is required", where, key)
    _wrong(value, str, where, key)


def string(obj: Obj, key: str, where: str) -> str | None:
    value: Any = obj.get(key)
    return value if value is None or type(value) is str else _wrong(value, str, where, key)


def integer(obj: Obj, key: str, where: str) -> int | None:
    value: Any = obj.get(key)
    return value if value is None or type(value) is int else _wrong(value, int, where, key)


def boolean(obj: Obj, key: str, where: str) -> bool | None:
    value: Any = obj.get(key)
    return value if value is None or type(value) is bool else _wrong(value, bool, where, key)


def number(obj: Obj, key: str, where: str) -> float | None:
    value = obj.get(key)
    if value is None or type(value) is int or type(value) is float:
        return value
    reject(f"expected a number, got {word(value)}", where, key)


def array(obj: Obj, key: str, where: str) -> list[Any]:
    """The list at `key`; empty if it is missing or null."""
    value: Any = obj.get(key)
    if value is None:
        return []
    return value if is_array(value) else _wrong(value, list, where, key)


def objects(obj: Obj, key: str, where: str) -> list[tuple[str, Obj]]:
    """The objects in the list at `key`, each with its path."""
    items = array(obj, key, where)
    if not items:
        return []
    at = join(where, key)
    return [(path := f"{at}[{i}]", as_object(item, path)) for i, item in enumerate(items)]


def mapping(obj: Obj, key: str, where: str) -> Obj | None:
    value: Any = obj.get(key)
    return value if value is None or is_object(value) else _wrong(value, dict, where, key)


def strings(obj: Obj, key: str, where: str) -> tuple[str, ...]:
    """The strings at `key`: a list, or a single string."""
    value = obj.get(key)
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if is_array(value) and all(isinstance(v, str) for v in value):
        return tuple(value)
    reject("expected a string or an array of strings", where, key)


def choice(obj: Obj, key: str, where: str, allowed: tuple[str, ...]) -> str | None:
    value = string(obj, key, where)
    if value is not None and value not in allowed:
        reject(f"{value!r} is not one of {', '.join(allowed)}", where, key)
    return value
