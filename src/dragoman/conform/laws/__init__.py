"""Every law of a client's protocol that can be seen in the bytes it received.

`check` lists what is wrong; an empty list is a clean answer. An error in the protocol's own form is
a legal end of a stream, and a legal body. Each protocol has a module here that is named like its folder in
`protocols/`: `openai_chat` for `openai-chat`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from .base import Broken, Complaints, Law

__all__ = ["Broken", "Complaints", "Judge", "Law", "check", "judge", "judge_of"]

_Check = Callable[[bytes], Complaints]


@dataclass(frozen=True, slots=True)
class Judge:
    """The two checks of a protocol, and the laws each of them may find broken."""

    stream: _Check
    body: _Check
    laws_of_streams: tuple[Law, ...]
    laws_of_bodies: tuple[Law, ...]
    failed_answer: bytes | None
    """Bytes in a body that is an answer and not just an error, where an answer can say that it failed."""


@cache
def judge_of(protocol: str) -> Judge:
    """The judge of `protocol`."""
    room = import_module(f".{protocol.replace('-', '_')}", __package__)
    return Judge(
        room.check_stream,
        room.check_whole,
        room.LAWS_OF_STREAMS,
        room.LAWS_OF_BODIES,
        getattr(room, "FAILED_ANSWER", None),
    )


def judge(protocol: str, body: bytes, *, stream: bool) -> Complaints:
    """What a look at `body`, a stream or a whole JSON body (an error body included), found out."""
    judge = judge_of(protocol)
    return (judge.stream if stream else judge.body)(body)


def check(protocol: str, body: bytes, *, stream: bool) -> list[Broken]:
    """The complaints about `body`."""
    return judge(protocol, body, stream=stream).found
