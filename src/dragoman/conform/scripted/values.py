"""Generate a tool's arguments from its schema and the user's text. Deterministic."""

from __future__ import annotations

import re
from typing import Any

from ...protocols.common.fields import is_array, is_object
from .user_text import UserText

_DEEPEST, _LONGEST = 6, 100
_FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "email": "ada@example.com",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "hostname": "example.com",
}
_PATTERN_TRIES = ("a", "abc", "A", "ABC", "1", "123", "a1", "1.0.0", "#ffffff", "ABC-123", *_FORMATS.values())


def arguments(
    schema: dict[str, Any] | None, text: str, *, with_optional: bool = False, variant: int = 0
) -> dict[str, Any]:
    """The arguments of a call. `with_optional` adds optional members; `variant` 1 gives other values."""
    value = _Filler(schema or {}, UserText(text, variant), with_optional).value(schema or {}, "", 0)
    return value if is_object(value) else {}


def document(schema: dict[str, Any] | None, text: str) -> Any:
    """A value that is valid by `schema`, for a request with a JSON response format."""
    if not schema:
        return {"answer": text}
    return _Filler(schema, UserText(text), with_optional=True).value(schema, "answer", 0)


def properties(schema: dict[str, Any]) -> dict[str, Any]:
    value = schema.get("properties")
    return value if is_object(value) else {}


def required(schema: dict[str, Any]) -> list[str]:
    return [name for name in _list(schema, "required") if isinstance(name, str)]


class _Filler:
    def __init__(self, root: dict[str, Any], user_text: UserText, with_optional: bool) -> None:
        self._root = root
        self._user_text = user_text
        self._with_optional = with_optional

    def value(self, schema: Any, name: str, depth: int, *, needed: bool = True) -> Any:
        """A value for a member. An optional boolean is false: options such as `force` must not be set."""
        schema = self._plain(schema)
        if "const" in schema:
            return schema["const"]
        if choices := _list(schema, "enum"):
            return next((v for v in choices if self._user_text.mentions(v)), choices[0])
        if "default" in schema and name:
            return schema["default"]
        match _type(schema):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, name, depth)
            case "integer" | "number" as kind:
                return self._number(schema, kind, name)
            case "boolean":
                return needed
            case "null":
                return None
            case _:
                return self._string(schema, name)

    def _plain(self, schema: Any) -> dict[str, Any]:
        """The schema with `$ref`, `anyOf`, `oneOf` and `allOf` merged into one level."""
        merged: dict[str, Any] = {}
        queue: list[Any] = [schema]
        for _ in range(16):
            if not queue:
                break
            level = queue.pop(0)
            if not is_object(level):
                continue
            if isinstance(level.get("$ref"), str):
                queue.append(self._referred(level["$ref"]))
            for key in ("anyOf", "oneOf"):
                queue += [v for v in _list(level, key) if not _is_null(v)][:1]
            queue += _list(level, "allOf")
            _merge(merged, level)
        return merged

    def _referred(self, reference: str) -> Any:
        here: Any = self._root
        for step in reference.removeprefix("#").strip("/").split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            here = here.get(key) if is_object(here) and key else here
        return here

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        members, needed = properties(schema), required(schema)
        names = [name for name in members if name in needed or self._is_sent(name, members)]
        names += [name for name in needed if name not in members]
        if depth > _DEEPEST:
            names = []
        return {
            name: self.value(members.get(name, {}), name, depth + 1, needed=name in needed) for name in names
        }

    def _is_sent(self, name: str, members: dict[str, Any]) -> bool:
        """Send an optional member if the user mentions one of its choices, or with `with_optional`."""
        schema = self._plain(members[name])
        if self._with_optional and _type(schema) in ("integer", "number", "boolean", "array"):
            return True
        return any(len(str(v)) > 1 and self._user_text.mentions(v) for v in _list(schema, "enum"))

    def _array(self, schema: dict[str, Any], name: str, depth: int) -> list[Any]:
        least = schema.get("minItems")
        if depth > _DEEPEST or schema.get("maxItems") == 0:
            return []
        item = self.value(schema.get("items", {}), name, depth + 1)
        return [item] * (min(max(1, least), _LONGEST) if isinstance(least, int) else 1)

    def _number(self, schema: dict[str, Any], kind: str, name: str) -> float | int:
        number = self._user_text.number(name)
        for key, step in (("minimum", 0), ("exclusiveMinimum", 1)):
            number = max(number, _number(schema, key, number) + step * (key in schema))
        for key, step in (("maximum", 0), ("exclusiveMaximum", 1)):
            number = min(number, _number(schema, key, number) - step * (key in schema))
        multiple = _number(schema, "multipleOf", 0)
        if multiple > 0:
            number = max(1, -(-number // multiple)) * multiple
        return int(number) if kind == "integer" or number == int(number) else number

    def _string(self, schema: dict[str, Any], name: str) -> str:
        text = _FORMATS.get(str(schema.get("format"))) or self._user_text.string(name)
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and not _matches(pattern, text):
            text = next((t for t in _PATTERN_TRIES if _matches(pattern, t)), text)
        least, most = schema.get("minLength"), schema.get("maxLength")
        if isinstance(least, int):
            text = text.ljust(min(least, 100 * _LONGEST), "x")
        return text[:most] if isinstance(most, int) else text


def _merge(merged: dict[str, Any], level: dict[str, Any]) -> None:
    for key, value in level.items():
        before = merged.get(key)
        if key == "properties" and is_object(before) and is_object(value):
            merged[key] = {**before, **value}
        elif key == "required" and is_array(before) and is_array(value):
            merged[key] = [*before, *value]
        else:
            merged.setdefault(key, value)


def _type(schema: dict[str, Any]) -> str:
    kind = schema.get("type")
    if is_array(kind):
        kind = next((k for k in kind if k != "null"), "null")
    if isinstance(kind, str):
        return kind.lower()  # Gemini writes OBJECT
    if "properties" in schema or "required" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def _is_null(schema: Any) -> bool:
    return is_object(schema) and schema.get("type") == "null"


def _list(schema: dict[str, Any], key: str) -> list[Any]:
    value = schema.get(key)
    return value if is_array(value) else []


def _number(schema: dict[str, Any], key: str, fallback: float) -> float:
    value = schema.get(key)
    return fallback if not isinstance(value, (int, float)) or isinstance(value, bool) else value


def _matches(pattern: str, text: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True
