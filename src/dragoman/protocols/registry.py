"""The protocols there are. A new one joins by being listed; the matrix tests pick it up from here."""

from __future__ import annotations

from ..errors import DragomanError
from .anthropic import PROTOCOL as ANTHROPIC
from .base import WireProtocol
from .gemini import PROTOCOL as GEMINI
from .openai_chat import PROTOCOL as OPENAI_CHAT
from .openai_responses import PROTOCOL as OPENAI_RESPONSES

PROTOCOLS: dict[str, WireProtocol] = {p.name: p for p in (ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, GEMINI)}


def protocol(name: str) -> WireProtocol:
    """The protocol called `name`."""
    try:
        return PROTOCOLS[name]
    except KeyError:
        known = ", ".join(PROTOCOLS)
        raise DragomanError(f"there is no protocol {name!r}; there are {known}") from None
