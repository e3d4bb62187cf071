"""Which conversation a request belongs to: routes with weights share out conversations, not requests.

A turn that goes elsewhere than the one before it finds no prompt cache, and reasoning that was sealed for
somebody else. Nothing is kept for this: whoever asks (another process, after a restart) finds the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..model.messages import Message, Request, plain_text

# opencode and Kilo, and people; Claude Code; Codex, new and old.
_SESSIONS = ("x-session-id", "x-session-affinity", "x-claude-code-session-id", "session-id", "session_id")
PROMPTS = frozenset({"system", "developer"})


def session_in(headers: Mapping[str, str]) -> str:
    """The id that a client gives its conversation; "" if it has none."""
    return next((headers[name] for name in _SESSIONS if headers.get(name)), "")


def conversation_of(request: Request, session: str) -> str:
    """The same text for every turn of a conversation; "" if nothing tells them.

    What the client calls it, or else what was said first in it. Prompts do not count: they may tell the time.
    """
    return session or request.settings.cache_key or _opening(request.messages)


def _opening(messages: Sequence[Message]) -> str:
    """What was said first. Not its JSON: cache marks come and go on it."""
    first = next((message for message in messages if message.role not in PROMPTS), None)
    return "" if first is None else plain_text(first.parts)
