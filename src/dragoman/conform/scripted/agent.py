"""The small agent that the scripted model plays: it reads the conversation and decides what to do next.

It answers a plain question with words, calls a tool where one is offered that could do what was asked, and
closes with words that quote what the tools answered. It knows nothing and never guesses at random.
"""

from __future__ import annotations

import itertools
import re

import msgspec

from ...model.messages import Message, Part, Request, Text, Tool, ToolCall, ToolResult, plain_text
from . import edits, freeform, values
from .tool_choice import choice
from .user_text import Wish

_json = msgspec.json.Encoder().encode
_PATIENCE = 8
"""Calls in one turn of the user's, after which even the most stubborn model has to say something."""

# Agents slip these in, alone or beside the words of their users; Dragoman marks system messages so where a
# protocol has none.
_SLIPPED_IN = "system-reminder|system|environment_details|environment_context"
_REMINDER = re.compile(rf"<({_SLIPPED_IN})>.*?(?:</\1>|\Z)", re.DOTALL)


def turn(
    request: Request, *, eager: bool = False, generous: bool = False, deaf: bool = False
) -> tuple[Part, ...]:
    """The parts of the next answer; calls have no ids yet.

    `eager` calls some tool even when nothing asks for one, once in a conversation; `generous` says optional
    arguments as well; `deaf` takes no notice of what the tools answered and asks for the same again.
    """
    results = heard(request)
    if results and (not deaf or len(calls_of_turn(request)) >= _PATIENCE):
        return (Text(closing(request, results)),)
    text = asked(request)
    tool = choice(request, text, eager=deaf or (eager and not _has_called(request)))
    if tool is not None:
        return (Text(f"I will use {tool.name} for that.\n"), call(tool, text, generous=generous))
    return (Text(_plain_answer(request, text)),)


def call(tool: Tool, text: str, *, generous: bool = False, variant: int = 0) -> ToolCall:
    """A call of `tool` for what the user asked."""
    if freeform.is_meant(tool):
        said = freeform.text(tool, Wish(text, variant))
        if tool.kind != "custom":
            said = _json({freeform.MEMBER: said}).decode()
    else:
        said = _json(values.arguments(tool.schema, text, generous=generous, variant=variant)).decode()
    kind = "custom" if tool.kind == "custom" else "function"
    return ToolCall(id="", name=tool.name, arguments=said, kind=kind, namespace=tool.namespace)


def named(request: Request, call: ToolCall) -> Tool:
    """The tool that `call` is for."""
    return next(t for t in request.tools if (t.name, t.namespace) == (call.name, call.namespace))


def asked(request: Request) -> str:
    """What the user wrote last, without the reminders that agents slip in."""
    return next((said for message in reversed(request.messages) if (said := _said(message))), "")


def calls_of_turn(request: Request) -> list[ToolCall]:
    """The calls that were made since the user wrote something."""
    since = itertools.takewhile(lambda message: not _said(message), reversed(request.messages))
    return [part for message in since for part in message.parts if isinstance(part, ToolCall)]


def heard(request: Request) -> list[ToolResult]:
    """What tools answered since the model spoke last."""
    parts = (part for message in _since_last_answer(request) for part in message.parts)
    return [part for part in parts if isinstance(part, ToolResult)]


def closing(request: Request, results: list[ToolResult]) -> str:
    """Words that quote the results."""
    calls = {p.id: p.name for m in request.messages for p in m.parts if isinstance(p, ToolCall)}
    lines: list[str] = []
    for result in results:
        name = result.name or calls.get(result.call_id, "the tool")
        said = plain_text(result.parts, "\n").strip()[:400] or "nothing"
        lines.append(f"{name} {'failed' if result.is_error else 'answered'}: “{said}”")
    return "\n".join((*lines, "That is all there is to do."))


def _said(message: Message) -> str:
    """The user's last words in a message; none where it has only results, or only reminders."""
    texts = [_REMINDER.sub("", p.text).strip() for p in message.parts if isinstance(p, Text)]
    said = [text for text in texts if text] if message.role == "user" else []
    return said[-1] if said else ""


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
    said = " ".join(text.split())[:120] or "nothing at all"
    tools = [tool.name for tool in request.tools if tool.kind != "hosted"][:6]
    able = f"I can call {', '.join(tools)} when you ask for what they do." if tools else ""
    able = able or "Offer me tools, and I will call one when you ask for what it does."
    return f"You said: “{said}”. I am a scripted model: no key, no network, no knowledge. {able}"
