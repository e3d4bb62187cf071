"""The conversation that a request belongs to. Routes with weights distribute conversations, not requests.

All turns of a conversation should go to one upstream: another upstream has no prompt cache for it, and cannot
read sealed reasoning of the first. The key is computed from the request alone, so every process finds the
same key, also after a restart.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from ..model.messages import Message, Request, plain_text
from ..profiles import UNKNOWN

# opencode and Kilo send the first two, Claude Code the third, Codex the last two (new and old).
_HEADERS = (
    "x-session-id",
    "x-session-affinity",
    "x-claude-code-session-id",
    "session-id",
    "session_id",
)
# What agents tell the model in the user's name: in tags, Codex's AGENTS.md with a heading before the tag.
_TAGGED = re.compile(r"<([A-Za-z][\w-]*)>.*?</\1>", re.DOTALL)
_OPENING_TAG = re.compile(r"\s*(?:#[^\n]*\n\s*)?<([A-Za-z][\w-]*)>")
_SEARCHED = 20_000
_LONGEST_OPENING = 90
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


def session_id(scope: str, conversation: str) -> str:
    """The conversation as receipts name it: 16 hexadecimal digits; "" if there is no conversation.

    It tells nothing about the text. Equal texts of two clients have different ids.
    """
    if not conversation:
        return ""
    text = f"{scope}\0{conversation}".encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def opening_words(request: Request, profile: str | None) -> str:
    """The first words of the user, for the list of sessions; "" for a request beside the conversation.

    Agents ask for a title or check a quota without offering tools. What they say there is not the user's.
    """
    if not request.tools and profile not in (None, UNKNOWN.name):
        return ""
    said = (message for message in request.messages if message.role == "user")
    text = next(filter(None, (_said(plain_text(message.parts)) for message in said)), "")
    if len(text) <= _LONGEST_OPENING:
        return text
    # Cut between words: half a secret would not be recognised as one.
    return f"{text[: _LONGEST_OPENING + 1].rpartition(' ')[0]}…"


def _said(text: str) -> str:
    """A text without the tagged parts that agents add to it. Its beginning, if the rest is long."""
    at = 0
    while (tag := _OPENING_TAG.match(text, at)) and (end := text.find(f"</{tag[1]}>", tag.end())) >= 0:
        at = end + len(tag[1]) + 3
    return " ".join(_TAGGED.sub(" ", text[at : at + _SEARCHED]).split())


def _opening(messages: Sequence[Message]) -> str:
    """The text of the first message. Not its JSON: clients move cache marks between turns."""
    first = next((message for message in messages if message.role not in PROMPTS), None)
    return "" if first is None else plain_text(first.parts)
