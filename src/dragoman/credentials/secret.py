"""A secret whose text form is a fingerprint, so that no log, error or traceback shows it."""

from __future__ import annotations

import hashlib
import hmac
from typing import NoReturn, Self, final


@final
class Secret:
    """A key or token. Only `reveal()` returns it; printing, formatting and pickling do not.

    >>> key = Secret("sk-very-secret")
    >>> f"{key} {key!r} {key:>10}"
    '#e7f15906 #e7f15906  #e7f15906'
    """

    __slots__ = ("_fingerprint", "_reveal")

    def __init__(self, value: str) -> None:
        # Kept in a closure: a debugger or logger that prints attributes shows a function, not the text.
        self._reveal = lambda: value
        self._fingerprint = ""

    def reveal(self) -> str:
        """The secret itself. Use it only to send it."""
        return self._reveal()

    @property
    def fingerprint(self) -> str:
        """Safe to show: it tells two secrets apart and does not reveal them."""
        if not self._fingerprint:
            self._fingerprint = "#" + hashlib.sha256(_bytes(self.reveal())).hexdigest()[:8]
        return self._fingerprint

    def __repr__(self) -> str:
        return self.fingerprint

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.fingerprint, spec)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(_bytes(self.reveal()), _bytes(other.reveal()))

    def __hash__(self) -> int:
        return hash(self.reveal())

    def __bool__(self) -> bool:
        return bool(self.reveal())

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be pickled or copied into a file")


def _bytes(value: str) -> bytes:
    """Encode lone surrogates too: the text of an encoding error would contain the secret."""
    return value.encode("utf-8", "surrogatepass")
