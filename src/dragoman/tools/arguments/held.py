"""The base of all assemblies that emit nothing before the end of the call."""

from __future__ import annotations

from .fragments import Fragments


class HeldArguments:
    """Holds the fragments of a call. A subclass makes the arguments of them in `finish`."""

    whole = False  # nothing is read before the end

    __slots__ = ("fragments",)

    def __init__(self, fragments: Fragments) -> None:
        self.fragments = fragments

    def feed(self, fragment: str) -> str:
        """Take the next fragment. Nothing goes to the client yet."""
        self.fragments.hold(fragment)
        return ""

    def release(self) -> str:
        return ""
