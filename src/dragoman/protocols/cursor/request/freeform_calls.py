"""Calls of freeform tools that Cursor sends back as functions.

Cursor 3.14 crashes on a call with `type: "custom"`, so it gets freeform calls as functions with the raw text
in `arguments`. Its later requests repeat that form. If the request declares a tool as freeform, all its calls
are freeform calls. Each upstream then gets them in its own form.
"""

from __future__ import annotations

import msgspec

from ....model.messages import Message, Part, Request, ToolCall, ToolResult


def with_freeform_calls(request: Request) -> Request:
    """Turn the function calls of freeform tools into freeform calls."""
    freeform = {tool.name for tool in request.tools if tool.kind == "custom"}
    calls = {
        part.id
        for message in request.messages
        for part in message.parts
        if isinstance(part, ToolCall) and part.kind == "function" and part.name in freeform
    }
    if not calls:
        return request
    return request.changed(messages=tuple(_corrected(message, calls) for message in request.messages))


def _corrected(message: Message, calls: set[str]) -> Message:
    parts = tuple(_as_freeform(part, calls) for part in message.parts)
    return message if parts == message.parts else msgspec.structs.replace(message, parts=parts, raw=None)


def _as_freeform(part: Part, calls: set[str]) -> Part:
    match part:
        case ToolCall(id=id) | ToolResult(call_id=id) if id in calls:
            return msgspec.structs.replace(part, kind="custom", raw=None)
        case _:
            return part
