"""The conversation that a request belongs to. Routes with weights distribute conversations, not requests.

All turns of a conversation should go to one upstream: another upstream has no prompt cache for it, and cannot
read sealed reasoning of the first. The key is computed from the request alone, so every process finds the
same key, also after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..model.messages import Message, Request, plain_text

# opencode and Kilo send the first two, Claude Code the third, Codex the last two (new and old).
_HEADERS = (
    "x-session-id",
    "x-session-affinity",
    "x-claude-code-session-id",
    "session-id",
    "session_id",
)
PROMPTS = frozenset({"system", "developer"})


def session_in(headers: Mapping[str, str]) -> str:
    """The client's own id for its conversation; "" without one."""
    return next((headers[name] for name in _HEADERS if headers.get(name)), "")


def conversation_of(request: Request, session: str) -> str:
    """A key that is the same for every turn of a conversation; "" if there is none.

    It is the client's session or cache key, else the text of the first message. System prompts do not count:
    some contain the current time.
    """
    return session or request.settings.cache_key or _opening(request.messages)


def _opening(messages: Sequence[Message]) -> str:
    """The text of the first message. Not its JSON: clients move cache marks between turns."""
    first = next((message for message in messages if message.role not in PROMPTS), None)
    return "" if first is None else plain_text(first.parts)
