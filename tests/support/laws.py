"""Every law of a client's protocol that can be seen in the bytes it received.

`check` lists what is wrong; an empty list is a clean answer. An error in the protocol's own form is
a legal end of a stream, and a legal body.
"""

from collections.abc import Callable

from . import laws_anthropic, laws_chat, laws_gemini, laws_responses
from .shape import ANTHROPIC, CHAT, GEMINI, RESPONSES

_Check = Callable[[bytes], list[str]]

_CHECKS: dict[str, tuple[_Check, _Check]] = {
    ANTHROPIC: (laws_anthropic.check_stream, laws_anthropic.check_whole),
    CHAT: (laws_chat.check_stream, laws_chat.check_whole),
    RESPONSES: (laws_responses.check_stream, laws_responses.check_whole),
    GEMINI: (laws_gemini.check_stream, laws_gemini.check_whole),
}


def check(protocol: str, body: bytes, *, stream: bool) -> list[str]:
    """The complaints about `body`, a stream or a whole JSON body (an error body included)."""
    check_stream, check_whole = _CHECKS[protocol]
    return (check_stream if stream else check_whole)(body)
