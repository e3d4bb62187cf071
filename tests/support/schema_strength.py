"""Does a schema allow at least the values of another? A structural check that only allows omissions."""

from typing import Any

# Only for people.
_WORDS = {"title", "description", "$schema", "$comment", "default", "examples", "propertyOrdering"}


def weakened(original: Any, result: Any) -> bool:
    """Is `result` equal to `original` or weaker, with all its properties, required members and texts?"""
    if not isinstance(original, dict) or not isinstance(result, dict):
        return original == result
    original = _plain(original)
    for key, value in _plain(result).items():
        if key not in original:
            if (key, value) not in (("type", "object"), ("properties", {})):
                return False
        elif not _weaker_member(key, original[key], value):
            return False
    return all(original.get(k) == result.get(k) for k in ("required", "description") if k in original)


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Normalize equivalent spellings."""
    names = {"const": "enum", "oneOf": "anyOf", "definitions": "$defs"}
    return {names.get(k, k): [v] if k == "const" else v for k, v in schema.items() if k != "$schema"}


def _weaker_member(key: str, original: Any, result: Any) -> bool:
    if key in ("properties", "$defs"):
        return original.keys() == result.keys() and all(weakened(original[k], result[k]) for k in original)
    if key in ("anyOf", "allOf"):
        return len(original) == len(result) and all(map(weakened, original, result))
    return weakened(original, result) if key not in _WORDS else original == result
