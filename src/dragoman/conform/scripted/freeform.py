"""Input for tools that take free text instead of JSON arguments: a patch, a script, or the user's text."""

from __future__ import annotations

import msgspec

from ...model.messages import Tool
from ...tools.rules.tables import squash
from .user_text import UserText
from .values import properties

MEMBER = "input"
"""In protocols without freeform tools, a gateway offers them as functions with this one parameter."""
_json = msgspec.json.Encoder().encode
_PATCH = "*** Begin Patch\n*** Add File: hello.txt\n+Hello.\n*** End Patch\n"


def is_freeform(tool: Tool) -> bool:
    """Does the tool take free text, by its kind or by its only parameter?"""
    return tool.kind == "custom" or list(properties(tool.schema or {})) == [MEMBER]


def text(tool: Tool, user_text: UserText) -> str:
    if "patch" in squash(tool.name):
        return _PATCH
    if "JavaScript" in (tool.description or ""):
        # Codex's code mode: a script that calls the tools and prints the results that it needs.
        return f"text(await tools.exec_command({{cmd: {_json(user_text.string('command')).decode()}}}));"
    return user_text.words()
