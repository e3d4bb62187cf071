"""Reduce the bytes a client received to the neutral form of the corpus.

`stop` is None when the bytes end without saying how. `error` is set, and `stop` is "error", when
they end in the protocol's error form. `usage` has only the numbers that were sent: `input` (all
prompt tokens, cached ones included), `output` (reasoning included), and the parts `cached_input`,
`cache_write` and `reasoning`. `opaque` lists signatures and encrypted reasoning in order.
"""

from .reduce import reader_of
from .shape import Neutral, UnreadableError

__all__ = ["Neutral", "UnreadableError", "reduce"]


def reduce(protocol: str, body: bytes, *, stream: bool) -> Neutral:
    """What a client of `protocol` understands of `body`: a stream, a whole answer or an error body.

    Raises `UnreadableError` when the bytes have not the shape of the protocol.
    """
    reader = reader_of(protocol)
    try:
        return (reader.stream if stream else reader.whole)(body).as_dict()
    except (KeyError, TypeError, AttributeError, IndexError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{type(error).__name__}: {error}") from error
