"""The protocols there are. A new one joins by being listed; the matrix tests pick it up from here.

Most are spoken by clients and by upstreams. A reply protocol is only ever answered in: no upstream has it.
"""

from __future__ import annotations

from ..errors import DragomanError
from .anthropic import PROTOCOL as ANTHROPIC
from .base import ClientProtocol, WireProtocol
from .cursor import PROTOCOL as CURSOR
from .gemini import PROTOCOL as GEMINI
from .openai_chat import PROTOCOL as OPENAI_CHAT
from .openai_responses import PROTOCOL as OPENAI_RESPONSES

PROTOCOLS: dict[str, WireProtocol] = {p.name: p for p in (ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES, GEMINI)}
CLIENTS: dict[str, ClientProtocol] = {**PROTOCOLS, CURSOR.name: CURSOR}


def protocol(name: str) -> WireProtocol:
    """The protocol called `name`, as upstreams speak it too."""
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    known = ", ".join(PROTOCOLS)
    if name in CLIENTS:
        raise DragomanError(f"{name!r} is a reply protocol: no upstream speaks it. Those that do are {known}")
    raise DragomanError(f"there is no protocol {name!r}; there are {known}")


def client_protocol(name: str) -> ClientProtocol:
    """The protocol called `name`, as a client wants to be answered in."""
    try:
        return CLIENTS[name]
    except KeyError:
        known = ", ".join(CLIENTS)
        raise DragomanError(f"there is no protocol {name!r}; there are {known}") from None
