"""What tools get that take text instead of arguments: a patch, a script, or the user's words."""

from __future__ import annotations

import msgspec

from ...model.messages import Tool
from ...tools.rules.tables import squash
from .user_text import Wish
from .values import properties

MEMBER = "input"
"""A gateway offers a freeform tool, where a protocol has none, as a function with this one member."""
_json = msgspec.json.Encoder().encode
_PATCH = "*** Begin Patch\n*** Add File: hello.txt\n+Hello.\n*** End Patch\n"


def is_meant(tool: Tool) -> bool:
    """Does it take text, by its kind or by its only member?"""
    return tool.kind == "custom" or list(properties(tool.schema or {})) == [MEMBER]


def text(tool: Tool, wish: Wish) -> str:
    """The text for `tool`."""
    if "patch" in squash(tool.name):
        return _PATCH
    if "JavaScript" in (tool.description or ""):
        # Codex's code mode: a script that calls the tools, and says what it wants to be told.
        return f"text(await tools.exec_command({{cmd: {_json(wish.string('command')).decode()}}}));"
    return wish.words()
