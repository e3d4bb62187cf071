"""Every law of a client's protocol that can be seen in the bytes it received.

`check` lists what is wrong; an empty list is a clean answer. An error in the protocol's own form is
a legal end of a stream, and a legal body.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..shape import ANTHROPIC, CHAT, CURSOR, GEMINI, RESPONSES
from . import anthropic, chat, cursor, gemini, responses
from .base import Broken, Complaints, Law

__all__ = ["JUDGES", "Broken", "Complaints", "Judge", "Law", "check", "judge"]

_Check = Callable[[bytes], Complaints]


@dataclass(frozen=True, slots=True)
class Judge:
    """The two checks of a protocol, and the laws each of them may find broken."""

    stream: _Check
    body: _Check
    laws_of_streams: tuple[Law, ...]
    laws_of_bodies: tuple[Law, ...]


JUDGES: dict[str, Judge] = {
    name: Judge(room.check_stream, room.check_whole, room.LAWS_OF_STREAMS, room.LAWS_OF_BODIES)
    for name, room in (
        (ANTHROPIC, anthropic),
        (CHAT, chat),
        (RESPONSES, responses),
        (GEMINI, gemini),
        (CURSOR, cursor),
    )
}


def judge(protocol: str, body: bytes, *, stream: bool) -> Complaints:
    """What a look at `body`, a stream or a whole JSON body (an error body included), found out."""
    judge = JUDGES[protocol]
    return (judge.stream if stream else judge.body)(body)


def check(protocol: str, body: bytes, *, stream: bool) -> list[Broken]:
    """The complaints about `body`."""
    return judge(protocol, body, stream=stream).found
