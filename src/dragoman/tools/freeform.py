"""Arguments that need no live JSON correction: freeform text.

A freeform tool (OpenAI's `custom`) takes text instead of JSON arguments. An upstream or a client that knows
only functions gets the text in the member `input`.
"""

from __future__ import annotations

import msgspec

from ..protocols.common.freeform import PARAMETERS
from .arguments import Fragments, HeldArguments, Mode, Outcome, assemble
from .rules import Rules
from .schema import compile_schema


class FreeformText:
    """Freeform text on both sides, passed as it arrives or in one piece at the end."""

    whole = False

    def __init__(self, mode: Mode) -> None:
        self._live = mode == "live"
        self.fragments = Fragments()

    def feed(self, fragment: str) -> str:
        self.fragments.hold(fragment)
        return self.release()

    def release(self) -> str:
        return self.fragments.take_unread() if self._live else ""

    def finish(self, *, ended: bool) -> Outcome:
        text = self.fragments.received
        if self._live:
            return _outcome(text, self.release(), complete=ended)
        return _outcome(text, text, complete=True) if ended else _outcome("", "", complete=False)


class FreeformFromFunction(HeldArguments):
    """A freeform call that the upstream sent as a function: the member `input` is the text."""

    def __init__(self, name: str, rules: Rules) -> None:
        self._inner = assemble("whole", name, compile_schema(PARAMETERS), rules)
        super().__init__(self._inner.fragments)

    def finish(self, *, ended: bool) -> Outcome:
        outcome = self._inner.finish(ended=ended)
        value = (outcome.value or {}).get("input")
        if not outcome.complete or not isinstance(value, str):
            return msgspec.structs.replace(outcome, text="", rest="", complete=False)
        return msgspec.structs.replace(outcome, text=value, rest=value)


class FreeformAsFunction(HeldArguments):
    """A freeform call for a client that knows only functions."""

    def __init__(self) -> None:
        super().__init__(Fragments())

    def finish(self, *, ended: bool) -> Outcome:
        text = msgspec.json.encode({"input": self.fragments.received}).decode()
        return _outcome(text, text, complete=ended)


def _outcome(text: str, rest: str, complete: bool) -> Outcome:
    return Outcome(text=text, rest=rest, value=None, complete=complete, problems=(), fixes=())
