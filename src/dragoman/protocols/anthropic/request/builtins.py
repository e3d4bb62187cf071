"""The schemas of Anthropic's client tools, which Claude is trained on and other models are not.

The client runs these tools and declares only a type (`bash_20250124`). For other protocols they become
ordinary functions. A toolset is one entry for several tools: its members become functions in a namespace with
the `toolset_name` of their calls.
"""

from __future__ import annotations

from typing import Any

from ...common.fields import Obj, boolean, mapping

Schema = dict[str, Any]

_STRING: Schema = {"type": "string"}
_INTEGER: Schema = {"type": "integer"}
_NUMBER: Schema = {"type": "number"}
_BOOLEAN: Schema = {"type": "boolean"}
_STRINGS: Schema = {"type": "array", "items": _STRING}
_DIRECTION: Schema = {"type": "string", "enum": ["up", "down", "left", "right"]}


def _integers(count: int) -> Schema:
    return {"type": "array", "items": _INTEGER, "minItems": count, "maxItems": count}


def _object(required: Schema | None = None, optional: Schema | None = None) -> Schema:
    required = required or {}
    schema: Schema = {"type": "object", "properties": required | (optional or {})}
    if required:
        schema["required"] = list(required)
    return schema


def _command(names: str, members: Schema) -> Schema:
    """The schema of a tool with several commands: only `command` is required."""
    return _object({"command": {"type": "string", "enum": names.split()}}, members)


_VIEW_RANGE = _integers(2) | {"description": "First and last line to view, from 1; -1 is the end."}
_FILE: Schema = {
    "path": {"type": "string", "description": "Absolute path of the file or directory."},
    "view_range": _VIEW_RANGE,
    "file_text": {"type": "string", "description": "For create: the whole content."},
    "old_str": {"type": "string", "description": "For str_replace: the exact text to replace."},
    "new_str": {"type": "string", "description": "For str_replace: what stands there instead."},
    "insert_line": {
        "type": "integer",
        "description": "For insert: the line to insert after; 0 is the top.",
    },
}
_INSERT_TEXT: Schema = {"type": "string", "description": "For insert: the text."}
_INSERT_AS_NEW: Schema = {
    "new_str": {
        "type": "string",
        "description": "For str_replace: what stands there instead. For insert: the text.",
    },
}

_BASH = _object(
    optional={
        "command": {"type": "string", "description": "The command to run."},
        "restart": {"type": "boolean", "description": "True restarts the shell instead."},
    },
)
# Anthropic changed the editor twice: version 20250429 lost `undo_edit`, and 20250728 renamed the text of
# `insert` from `new_str` to `insert_text`. A client runs the version that it declares, so each version keeps
# its own schema.
_EDITOR_WITH_UNDO = _command("view create str_replace insert undo_edit", _FILE | _INSERT_AS_NEW)
_EDITOR_WITHOUT_UNDO = _command("view create str_replace insert", _FILE | _INSERT_AS_NEW)
_EDITOR = _command("view create str_replace insert", _FILE | {"insert_text": _INSERT_TEXT})
_MEMORY = _command(
    "view create str_replace insert delete rename",
    _FILE | {"insert_text": _INSERT_TEXT, "old_path": _STRING, "new_path": _STRING},
)

_POINT = _integers(2) | {"description": "x and y in pixels."}
_ACTIONS_2024 = (
    "key type mouse_move left_click left_click_drag right_click middle_click double_click "
    "screenshot cursor_position"
)
_ACTIONS_2025 = _ACTIONS_2024 + " left_mouse_down left_mouse_up triple_click hold_key scroll wait"


def _computer(actions: str, **members: Schema) -> Schema:
    return _object(
        {"action": {"type": "string", "enum": actions.split()}},
        {"coordinate": _POINT, "text": _STRING, **members},
    )


_MOVES: Schema = {
    "start_coordinate": _POINT,
    "duration": _NUMBER,
    "scroll_direction": _DIRECTION,
    "scroll_amount": _INTEGER,
}

_SHELL_SAYS = "Run a command in a bash session that lasts from call to call."
_EDITOR_SAYS = "View, create and edit text files."

BUILTINS: dict[str, tuple[str, Schema]] = {
    "bash_20241022": (_SHELL_SAYS, _BASH),
    "bash_20250124": (_SHELL_SAYS, _BASH),
    "text_editor_20241022": (_EDITOR_SAYS, _EDITOR_WITH_UNDO),
    "text_editor_20250124": (_EDITOR_SAYS, _EDITOR_WITH_UNDO),
    "text_editor_20250429": (_EDITOR_SAYS, _EDITOR_WITHOUT_UNDO),
    "text_editor_20250728": (_EDITOR_SAYS, _EDITOR),
    "memory_20250818": (
        "Keep and look up notes that last between conversations, as files under /memories.",
        _MEMORY,
    ),
    "computer_20241022": ("Use a computer's screen, mouse and keyboard.", _computer(_ACTIONS_2024)),
    "computer_20250124": (
        "Use a computer's screen, mouse and keyboard.",
        _computer(_ACTIONS_2025, **_MOVES),
    ),
    "computer_20251124": (
        "Use a computer's screen, mouse and keyboard.",
        _computer(_ACTIONS_2025 + " zoom", region=_integers(4), **_MOVES),
    ),
}
"""Type → description and schema."""

_CLICK = _object(optional={"coordinate": _POINT, "text": _STRING})

_COMPUTER: dict[str, Schema] = {
    "key": _object({"text": _STRING}, {"repeat": _INTEGER}),
    "hold_key": _object({"duration": _INTEGER, "text": _STRING}),
    "type": _object({"text": _STRING}),
    "cursor_position": _object(),
    "mouse_move": _object({"coordinate": _POINT}),
    "left_mouse_down": _object(),
    "left_mouse_up": _object(),
    "left_click": _CLICK,
    "left_click_drag": _object({"coordinate": _POINT, "start_coordinate": _POINT}, {"text": _STRING}),
    "right_click": _CLICK,
    "middle_click": _CLICK,
    "double_click": _CLICK,
    "triple_click": _CLICK,
    "scroll": _object(
        {"scroll_amount": _INTEGER, "scroll_direction": _DIRECTION},
        {"coordinate": _POINT, "text": _STRING},
    ),
    "wait": _object({"duration": _INTEGER}),
    "screenshot": _object(),
    "zoom": _object({"region": _integers(4)}),
}

_AT_POINT = _object({"type": {"const": "coordinate"}, "x": _INTEGER, "y": _INTEGER})
_AT_ELEMENT = _object({"type": {"const": "ref"}, "ref": _STRING})
_ANYWHERE: Schema = {"anyOf": [_AT_POINT, _AT_ELEMENT]}
_VALUE: Schema = {"anyOf": [_STRING, _NUMBER, _BOOLEAN]}
_TAB: Schema = {"tab_id": _STRING}
_IN_TAB = _object(optional=_TAB)
_CLICK_ON = _object({"target": _ANYWHERE}, {"modifiers": _STRING} | _TAB)
_MOUSE_AT = _object({"target": _AT_POINT}, _TAB)

_BROWSER: dict[str, Schema] = {
    "navigate": _object({"url": _STRING}, _TAB),
    "list_tabs": _object(),
    "new_tab": _object(),
    "switch_tab": _object(_TAB),
    "close_tab": _object(_TAB),
    "read_page": _object(
        optional={
            "depth": _INTEGER,
            "filter": {"type": "string", "enum": ["all", "interactive"]},
            "ref": _STRING,
            **_TAB,
        },
    ),
    "get_page_text": _IN_TAB,
    "read_console": _IN_TAB,
    "read_network": _IN_TAB,
    "find": _object({"query": _STRING}, _TAB),
    "form_input": _object({"target": _AT_ELEMENT, "value": _VALUE}, _TAB),
    "file_upload": _object({"target": _AT_ELEMENT}, {"document_ids": _STRINGS, "paths": _STRINGS, **_TAB}),
    "scroll_to": _object({"target": _AT_ELEMENT}, _TAB),
    "screenshot": _IN_TAB,
    "zoom": _object({"region": _integers(4)}, _TAB),
    "left_click": _CLICK_ON,
    "right_click": _CLICK_ON,
    "middle_click": _CLICK_ON,
    "double_click": _CLICK_ON,
    "triple_click": _CLICK_ON,
    "hover": _object({"target": _ANYWHERE}, _TAB),
    "left_click_drag": _object({"from": _AT_POINT, "target": _AT_POINT}, _TAB),
    "left_mouse_down": _MOUSE_AT,
    "left_mouse_up": _MOUSE_AT,
    "mouse_move": _MOUSE_AT,
    "scroll": _object(
        {"scroll_direction": _DIRECTION, "target": _AT_POINT}, {"scroll_amount": _INTEGER} | _TAB
    ),
    "type": _object({"text": _STRING}, _TAB),
    "key": _object({"text": _STRING}, {"repeat": _INTEGER} | _TAB),
    "hold_key": _object({"duration": _NUMBER, "text": _STRING}, _TAB),
    "wait": _object({"duration": _NUMBER}, _TAB),
    "javascript_exec": _object({"text": _STRING}, _TAB),
}

# Anthropic switches these members on only if `configs` enables them.
_OFF_UNLESS_ASKED = frozenset({"file_upload", "read_console", "read_network", "javascript_exec"})

_TOOLSETS: dict[str, tuple[str, dict[str, Schema], frozenset[str]]] = {
    "computer_toolset_20260801": ("computer", _COMPUTER, frozenset()),
    "browser_toolset_20260801": ("browser", _BROWSER, _OFF_UNLESS_ASKED),
}


def toolset(type: str, entry: Obj, where: str) -> tuple[str, dict[str, Schema]] | None:
    """The name of a toolset and the members that `entry` enables; None if it is not a toolset."""
    known = _TOOLSETS.get(type)
    if known is None:
        return None
    family, members, off = known
    configs = mapping(entry, "configs", where) or {}
    enabled: dict[str, Schema] = {}
    for name, schema in members.items():
        config = mapping(configs, name, f"{where}.configs") or {}
        chosen = boolean(config, "enabled", f"{where}.configs.{name}")
        if name not in off if chosen is None else chosen:
            enabled[name] = schema
    return family, enabled
