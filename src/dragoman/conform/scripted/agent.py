"""Decides the scripted model's next turn from the conversation. Deterministic: no randomness.

It calls a tool if an offered tool matches the user's text, answers a plain question with text, and ends the
turn with text that quotes the tool results.
"""

from __future__ import annotations

import itertools
import re

import msgspec

from ...model.messages import Message, Part, Request, Text, Tool, ToolCall, ToolResult, plain_text
from . import edits, freeform, values
from .tool_choice import choice
from .user_text import UserText

_json = msgspec.json.Encoder().encode
_MAX_CALLS = 8
"""Calls after one user message. Then even `ignore_results` answers with text, so that no loop is endless."""

# Agents add these tags to user messages. Dragoman uses them for system messages in protocols without any.
_REMINDER_TAGS = "system-reminder|system|environment_details|environment_context"
_REMINDER = re.compile(rf"<({_REMINDER_TAGS})>.*?(?:</\1>|\Z)", re.DOTALL)


def turn(
    request: Request, *, eager: bool = False, with_optional: bool = False, ignore_results: bool = False
) -> tuple[Part, ...]:
    """The parts of the next answer. Calls have no ids yet.

    `eager` calls some tool once in a conversation, even if the user did not ask for it. `with_optional` also
    sends optional arguments. `ignore_results` makes the same call again, whatever the tools answered.
    """
    results = tool_results(request)
    if results and (not ignore_results or len(calls_of_turn(request)) >= _MAX_CALLS):
        return (Text(closing(request, results)),)
    text = last_user_text(request)
    tool = choice(request, text, eager=ignore_results or (eager and not _has_called(request)))
    if tool is not None:
        return (Text(f"I will use {tool.name} for that.\n"), call(tool, text, with_optional=with_optional))
    return (Text(_plain_answer(request, text)),)


def call(tool: Tool, text: str, *, with_optional: bool = False, variant: int = 0) -> ToolCall:
    """A call of `tool` with arguments made from the user's text."""
    if freeform.is_freeform(tool):
        arguments = freeform.text(tool, UserText(text, variant))
        if tool.kind != "custom":
            arguments = _json({freeform.MEMBER: arguments}).decode()
    else:
        arguments = _json(
            values.arguments(tool.schema, text, with_optional=with_optional, variant=variant)
        ).decode()
    kind = "custom" if tool.kind == "custom" else "function"
    return ToolCall(id="", name=tool.name, arguments=arguments, kind=kind, namespace=tool.namespace)


def tool_of(request: Request, call: ToolCall) -> Tool:
    """The tool that `call` is for. A recorded model may have called one that is not offered."""
    offered = (t for t in request.tools if (t.name, t.namespace) == (call.name, call.namespace))
    return next(offered, Tool(name=call.name))


def last_user_text(request: Request) -> str:
    """The user's last message, without the reminders that agents add."""
    return next((text for message in reversed(request.messages) if (text := _user_text(message))), "")


def calls_of_turn(request: Request) -> list[ToolCall]:
    """The calls since the user's last message."""
    since = itertools.takewhile(lambda message: not _user_text(message), reversed(request.messages))
    return [part for message in since for part in message.parts if isinstance(part, ToolCall)]


def tool_results(request: Request) -> list[ToolResult]:
    """The tool results since the model's last answer."""
    parts = (part for message in _since_last_answer(request) for part in message.parts)
    return [part for part in parts if isinstance(part, ToolResult)]


def closing(request: Request, results: list[ToolResult]) -> str:
    """A text that quotes the results."""
    calls = {p.id: p.name for m in request.messages for p in m.parts if isinstance(p, ToolCall)}
    lines: list[str] = []
    for result in results:
        name = result.name or calls.get(result.call_id, "the tool")
        quoted = plain_text(result.parts, "\n").strip()[:400] or "nothing"
        lines.append(f"{name} {'failed' if result.is_error else 'answered'}: “{quoted}”")
    return "\n".join((*lines, "That is all there is to do."))


def _user_text(message: Message) -> str:
    """The last user text of a message; empty if the message only has tool results or reminders."""
    texts = [_REMINDER.sub("", p.text).strip() for p in message.parts if isinstance(p, Text)]
    kept = [text for text in texts if text] if message.role == "user" else []
    return kept[-1] if kept else ""


def _has_called(request: Request) -> bool:
    return any(isinstance(part, ToolCall) for message in request.messages for part in message.parts)


def _since_last_answer(request: Request) -> list[Message]:
    found: list[Message] = []
    for message in reversed(request.messages):
        if message.role == "assistant":
            break
        found.append(message)
    return found[::-1]


def _plain_answer(request: Request, text: str) -> str:
    wanted = request.settings.format
    if wanted is not None:
        return _json(values.document(wanted.schema, text)).decode()
    if edits.are_wanted(text):
        return edits.block(text)
    quoted = " ".join(text.split())[:120] or "nothing at all"
    tools = [tool.name for tool in request.tools if tool.kind != "hosted"][:6]
    able = f"I can call {', '.join(tools)} when you ask for what they do." if tools else ""
    able = able or "Offer me tools, and I will call one when you ask for what it does."
    return f"You said: “{quoted}”. I am a scripted model: no key, no network, no knowledge. {able}"
