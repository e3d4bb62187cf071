"""Reduce the bytes a client received to the neutral form of the corpus.

`stop` is None when the bytes end without saying how. `error` is set, and `stop` is "error", when
they end in the protocol's error form. `usage` has only the numbers that were sent: `input` (all
prompt tokens, cached ones included), `output` (reasoning included), and the parts `cached_input`,
`cache_write` and `reasoning`. `opaque` lists signatures and encrypted reasoning in order.
"""

from collections.abc import Callable

from .reduce import anthropic, chat, cursor, gemini, responses
from .shape import ANTHROPIC, CHAT, CURSOR, GEMINI, PROTOCOLS, RESPONSES, Answer, Neutral, UnreadableError

__all__ = ["PROTOCOLS", "Neutral", "UnreadableError", "reduce"]

_Reader = Callable[[bytes], Answer]

_READERS: dict[str, tuple[_Reader, _Reader]] = {
    ANTHROPIC: (anthropic.stream, anthropic.whole),
    CHAT: (chat.stream, chat.whole),
    RESPONSES: (responses.stream, responses.whole),
    GEMINI: (gemini.stream, gemini.whole),
    CURSOR: (cursor.stream, cursor.whole),
}


def reduce(protocol: str, body: bytes, *, stream: bool) -> Neutral:
    """What a client of `protocol` understands of `body`: a stream, a whole answer or an error body.

    Raises `UnreadableError` when the bytes have not the shape of the protocol.
    """
    read_stream, read_whole = _READERS[protocol]
    try:
        return (read_stream if stream else read_whole)(body).as_dict()
    except (KeyError, TypeError, AttributeError, IndexError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{type(error).__name__}: {error}") from error
