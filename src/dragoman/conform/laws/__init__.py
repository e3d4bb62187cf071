"""The laws of each client protocol, checked on the bytes that the client received.

`check` lists the breaches; an empty list is a clean answer. An error in the protocol's own form is a legal
end of a stream and a legal body. Each protocol has a module here, named like its folder in `protocols/`:
`openai_chat` for `openai-chat`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from .base import Breach, Complaints, Law

__all__ = ["Breach", "Complaints", "Judge", "Law", "check", "judge", "judge_of"]

_Check = Callable[[bytes], Complaints]


@dataclass(frozen=True, slots=True)
class Judge:
    """The two checks of a protocol, and the laws that each of them tests."""

    stream: _Check
    body: _Check
    laws_of_streams: tuple[Law, ...]
    laws_of_bodies: tuple[Law, ...]
    failed_answer: bytes | None
    """Bytes that show a failed answer with status 200, if the protocol has such answers."""


@cache
def judge_of(protocol: str) -> Judge:
    module = import_module(f".{protocol.replace('-', '_')}", __package__)
    return Judge(
        module.check_stream,
        module.check_whole,
        module.LAWS_OF_STREAMS,
        module.LAWS_OF_BODIES,
        getattr(module, "FAILED_ANSWER", None),
    )


def judge(protocol: str, body: bytes, *, stream: bool) -> Complaints:
    """Check `body`: a stream, or a whole JSON body, which may be an error."""
    judge = judge_of(protocol)
    return (judge.stream if stream else judge.body)(body)


def check(protocol: str, body: bytes, *, stream: bool) -> list[Breach]:
    """The breaches in `body`."""
    return judge(protocol, body, stream=stream).found
