"""The official SDKs as judges: they read the bytes with their own streaming helpers.

An API error that the SDK raises is returned as a neutral error, with the answer so far. Any other exception
means that the bytes are wrong, and is raised as `SdkRejected`.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from dragoman.conform.shape import Neutral, ReducedAnswer

from . import oracle_anthropic, oracle_gemini, oracle_openai
from .oracle_transport import Reply, Wire
from .wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

_Parse = Callable[[], ReducedAnswer]

_SDKS: dict[str, tuple[Wire, _Parse, _Parse]] = {
    ANTHROPIC: (oracle_anthropic.WIRE, oracle_anthropic.stream, oracle_anthropic.whole),
    CHAT: (oracle_openai.WIRE, oracle_openai.chat_helper, oracle_openai.chat_whole),
    RESPONSES: (oracle_openai.WIRE, oracle_openai.responses_helper, oracle_openai.responses_whole),
    GEMINI: (oracle_gemini.WIRE, oracle_gemini.stream, oracle_gemini.whole),
}


JUDGED = frozenset(_SDKS)
"""The protocols that have an SDK."""


class SdkRejected(Exception):
    """The SDK failed on the bytes. Its exception is the cause."""


@dataclass(frozen=True, slots=True)
class How:
    """How the bytes are sent and read.

    `piece`: the size of the pieces in bytes. `helper=False` reads a Chat stream with the plain
    iterator: the helper fails on fragments of freeform calls, even correct ones.
    """

    status: int = 200
    piece: int | None = None
    helper: bool = True


def parse(
    protocol: str,
    body: bytes,
    *,
    stream: bool,
    status: int = 200,
    piece: int | None = None,
    helper: bool = True,
) -> Neutral:
    """The neutral form of `body` as the SDK of `protocol` reads it."""
    return _read(protocol, body, stream, How(status, piece, helper))[0]


def raises_error(protocol: str, body: bytes, *, stream: bool, status: int = 200) -> bool:
    """Does the SDK raise its own API error?"""
    return _read(protocol, body, stream, How(status))[1]


def _read(protocol: str, body: bytes, stream: bool, how: How) -> tuple[Neutral, bool]:
    wire, parse_stream, parse_whole = _SDKS[protocol]
    if protocol == CHAT and not how.helper:
        parse_stream = oracle_openai.chat_iterator
    content_type = "text/event-stream" if stream and how.status == 200 else "application/json"
    wire.reply = Reply(body, how.status, content_type, how.piece)
    try:
        with warnings.catch_warnings():
            # A warning of an SDK, such as for an unknown finish reason, is no rejection.
            warnings.simplefilter("ignore")
            answer = (parse_stream if stream else parse_whole)()
        return answer.as_dict(), answer.raised
    except Exception as error:
        raise SdkRejected(f"{type(error).__name__}: {error}") from error
