"""A value that must not be seen: wherever it would be shown as text, its fingerprint stands instead."""

from __future__ import annotations

import hashlib
import hmac
from typing import NoReturn, Self, final


@final
class Secret:
    """A key or token. Only `reveal()` gives it out; printing, formatting and pickling do not.

    >>> key = Secret("sk-very-secret")
    >>> f"{key} {key!r} {key:>10}"
    '#e7f15906 #e7f15906  #e7f15906'
    """

    __slots__ = ("_fingerprint", "_reveal")

    def __init__(self, value: str) -> None:
        # Kept inside a closure: a tool that walks attributes to show them finds a function, not the text.
        self._reveal = lambda: value
        self._fingerprint = ""

    def reveal(self) -> str:
        """The secret itself: to be put on the wire, and nowhere else."""
        return self._reveal()

    @property
    def fingerprint(self) -> str:
        """What may be shown instead: tells two secrets apart and gives nothing away."""
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
    """Half characters count too: an encoding error would carry the secret in its text."""
    return value.encode("utf-8", "surrogatepass")
