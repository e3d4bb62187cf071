"""Reduce the bytes that a client received to the neutral form of the corpus.

`stop` is None if the bytes have no stop reason. `error` is set, and `stop` is "error", if the bytes
end in the protocol's error form. `usage` has only the numbers that were sent: `input` (all
prompt tokens, cached ones included), `output` (reasoning included), and the parts `cached_input`,
`cache_write` and `reasoning`. `opaque` lists signatures and encrypted reasoning in order.
"""

from .reduce import reducer_of
from .shape import Neutral, UnreadableError

__all__ = ["Neutral", "UnreadableError", "reduce"]


def reduce(protocol: str, body: bytes, *, stream: bool) -> Neutral:
    """What a client of `protocol` reads from `body`: a stream, a whole answer or an error body.

    Raises `UnreadableError` if the bytes do not have the shape of the protocol.
    """
    reducer = reducer_of(protocol)
    try:
        return (reducer.stream if stream else reducer.whole)(body).as_dict()
    except (KeyError, TypeError, AttributeError, IndexError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{type(error).__name__}: {error}") from error
