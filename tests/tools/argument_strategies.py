"""Hypothesis strategies: schemas, arguments that fit them, and the ways in which models spoil them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

WRITE: dict[str, Any] = {
    "type": "object",
    "properties": {"file_path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["file_path", "content"],
}
SEARCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "limit": {"type": "integer"},
        "deep": {"type": "boolean"},
        "min_score": {"type": "number"},
        "mode": {"type": "string", "enum": ["fast", "very_slow"]},
        "tag": {"type": ["string", "null"]},
    },
    "required": ["query"],
}
TODOS: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "todos": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "content": {"type": "string"},
                    "status": {"enum": ["pending", "in_progress", "completed"]},
                    "activeForm": {"type": "string"},
                },
                "required": ["content", "status", "activeForm"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["todos"],
    "additionalProperties": False,
}
CONFIG: dict[str, Any] = {
    "type": "object",
    "$defs": {"Flags": {"type": "object", "properties": {"on": {"type": "boolean"}}}},
    "properties": {
        "settings": {
            "type": "object",
            "properties": {"size": {"type": "integer"}, "flags": {"$ref": "#/$defs/Flags"}},
        },
        "files": {"type": "array", "items": {"type": "string"}},
        "either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]},
        "mode": {"type": "string", "default": "fast"},
    },
    "required": ["settings", "mode"],
    "additionalProperties": False,
}
GEMINI: dict[str, Any] = {
    "type": "OBJECT",
    "properties": {"city": {"type": "STRING"}, "days": {"type": "INTEGER", "nullable": True}},
    "required": ["city"],
}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}

TOOLS: dict[str, dict[str, Any]] = {
    "Write": WRITE,
    "search": SEARCH,
    "TodoWrite": TODOS,
    "set_config": CONFIG,
    "get_weather": GEMINI,
    "EnterPlanMode": NOTHING,
    "anything": {},
}

_PIECES = (
    "a", "Zü", "\n", '"', "\\", "\\d", "{", "}", "[", "]", ":", ",", "'", "😀", "\u2028", "\x1b",
    '"prompt":', "```json\n{}\n```", "null", "true", "&amp;", "</parameter>", '", "', '"}', " ",
)  # fmt: skip
texts = st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=3)), max_size=6).map("".join)
texts = texts.filter(lambda text: not re.search("[\ud800-\udfff]", text))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(
    ["path", "file_path", "content", "query", "search", "name", "arguments", "input", "tasks", "type", "x"]
)


def _optional(required: dict[str, Any], optional: dict[str, Any]) -> Any:
    return st.fixed_dictionaries(required, optional=optional)


_todo = st.fixed_dictionaries(
    {
        "content": texts,
        "status": st.sampled_from(["pending", "in_progress", "completed"]),
        "activeForm": texts,
    }
)
FITTING: dict[str, Any] = {
    "Write": _optional({"file_path": texts, "content": texts}, {}),
    "search": _optional(
        {"query": texts},
        {
            "limit": st.integers(),
            "deep": st.booleans(),
            "min_score": st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
            "mode": st.sampled_from(["fast", "very_slow"]),
            "tag": st.none() | texts,
        },
    ),
    "TodoWrite": _optional({"todos": st.lists(_todo, max_size=3)}, {}),
    "set_config": _optional(
        {
            "settings": _optional({}, {"size": st.integers(), "flags": st.just({"on": True})}),
            "mode": texts,
        },
        {"files": st.lists(texts, max_size=3), "either": st.integers() | st.lists(st.integers())},
    ),
    "get_weather": _optional({"city": texts}, {"days": st.none() | st.integers()}),
    "EnterPlanMode": st.just({}),
    "anything": st.dictionaries(texts, json_values, max_size=4),
}
OPEN = {"Write", "search", "get_weather", "anything"}  # schemas that allow extra members


@st.composite
def fitting_calls(draw: Any) -> tuple[str, dict[str, Any]]:
    """A tool and arguments that fit it, in any order of members, with extra ones where allowed."""
    tool = draw(st.sampled_from(sorted(FITTING)))
    value = draw(FITTING[tool])
    if tool in OPEN:
        extra = draw(st.dictionaries(names, json_values, max_size=2))
        value = {
            **{key: extra[key] for key in extra if key not in TOOLS[tool].get("properties", {})},
            **value,
        }
    order = draw(st.permutations(list(value)))
    return tool, {key: value[key] for key in order}


@st.composite
def spellings(draw: Any, value: Any) -> str:
    """Strict JSON text of a value, in different spacing."""
    ascii_only = draw(st.booleans())
    indent = draw(st.sampled_from([None, None, 1]))
    separators = draw(st.sampled_from([None, (",", ":"), (" ,\n", " :\t")]))
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent, separators=separators)
    return draw(st.sampled_from(["", " \n"])) + text + draw(st.sampled_from(["", "\n"]))


def _rename(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(f'"{old}"', f'"{new}"')


SPOILERS: dict[str, Callable[[str], str]] = {
    "nothing": lambda text: text,
    "fence": lambda text: f"```json\n{text}\n```",
    "half fence": lambda text: f"```{text}",
    "doubled": lambda text: text + text,
    "prefixed": lambda text: "{}" + text,
    "prefixed twice": lambda text: "{} {}" + text,
    "null prefix": lambda text: "null" + text,
    "prose after": lambda text: f"{text} I will do this now.",
    "prose before": lambda text: f"Sure, here: {text}",
    "in a string": lambda text: json.dumps(text),
    "in two strings": lambda text: json.dumps(json.dumps(text)),
    "in a list": lambda text: f"[{text}]",
    "twice in a list": lambda text: f"[{text}, {text}]",
    "name and arguments": lambda text: f'{{"name": "search", "arguments": {text}}}',
    "input": lambda text: f'{{"input": {text}}}',
    "arguments as text": lambda text: f'{{"arguments": {json.dumps(text)}}}',
    "schema echo": lambda text: f'{{"type": "object", "properties": {text}}}',
    "double brace": lambda text: "{" + text,
    "no opening brace": lambda text: text.strip()[1:],
    "trailing comma": lambda text: re.sub(r"}\s*\Z", ",}", text),
    "python": lambda text: text.replace("true", "True").replace("null", "None"),
    "single quotes": lambda text: text.replace('"', "'"),
    "smart quotes": lambda text: re.sub(r'"([^"\\]*)"', "“\\1”", text),
    "bare keys": lambda text: re.sub(r'"(\w+)"(\s*:)', r"\1\2", text),
    "raw control": lambda text: text.replace("\\n", "\n").replace("\\u001b", "\x1b"),
    "bad escape": lambda text: text.replace("\\\\", "\\"),
    "inner quotes": lambda text: text.replace('\\"', '"'),
    "path": _rename("file_path", "path"),
    "camel": lambda text: re.sub(r"_([a-z])", lambda m: m.group(1).upper(), text),
    "kebab": lambda text: text.replace("_", "-"),
    "shouting": str.upper,
    "tasks": _rename("todos", "tasks"),
    "done": _rename("completed", "done"),
    "extra member": lambda text: text.replace("{", '{"reason": "why", ', 1),
    "numbers as text": lambda text: re.sub(r"(:\s*)(-?\d+)(\s*[,}])", r'\1"\2"\3', text),
    "members as text": lambda text: _stringify_members(text),
    "null members": lambda text: re.sub(r":\s*-?\d+", ": null", text),
    "lists around members": lambda text: re.sub(r":\s*(-?\d+)", r": [\1]", text),
    "missing member": lambda text: re.sub(r'"activeForm"\s*:\s*"[^"\\]*"\s*,', "", text),
}


# Ways of spoiling that lose no information: the intended value must come out for every call.
HARMLESS = {
    "nothing", "fence", "half fence", "doubled", "prefixed", "prefixed twice", "null prefix", "prose after",
    "prose before", "in a string", "in two strings", "in a list", "twice in a list", "double brace",
    "no opening brace", "trailing comma",
}  # fmt: skip


def _stringify_members(text: str) -> str:
    value = json.loads(text)
    return json.dumps({key: json.dumps(inner) for key, inner in value.items()})


@st.composite
def spoiled_texts(draw: Any) -> tuple[str, str]:
    """A tool, and argument text spoiled in up to three ways and perhaps cut."""
    tool, value = draw(fitting_calls())
    text = draw(spellings(value))
    for name in draw(st.lists(st.sampled_from(sorted(SPOILERS)), max_size=3)):
        try:
            text = SPOILERS[name](text)
        except (ValueError, AttributeError):
            continue  # too spoiled already for this change
    if draw(st.booleans()):
        text = text[: draw(st.integers(0, len(text)))]
    return tool, text


@st.composite
def chunkings(draw: Any, text: str) -> list[str]:
    """`text` in random pieces."""
    if draw(st.booleans()):
        return list(text)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
