"""The receipt of one tool call: what arrived, what was sent, and why the two differ."""

from __future__ import annotations

import msgspec

from .rules import Fix
from .rules.answer_rules import CALL_IN_TEXT, REPEATED_CALL, TOOL_NAME


class CallReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to one call: how it arrived, and how the client got it."""

    id: str
    name: str
    upstream_id: str
    upstream_name: str
    received: str
    """The arguments as the upstream sent them."""
    sent: str
    """The arguments as the client got them."""
    complete: bool
    held_characters: int = 0
    """The most characters of the call that were held back at one time."""
    held_seconds: float = 0.0
    """How long any of the call was held back, by the clock of the exchange."""
    fixes: tuple[Fix, ...] = ()
    problems: tuple[str, ...] = ()
    dropped: str | None = None
    """Why the client did not get the call: `ghost`, `duplicate`, `server-side`, `cut`, `unreadable`,
    `reasked`, or `searched`: Dragoman ran it."""
    recovered: str | None = None
    """The name of the markup format, if the model wrote the call as text."""
    started: float | None = None
    """When the upstream began the call, by the clock of the exchange."""
    ended: float | None = None
    fragments: int = 0
    """The number of fragments in which the arguments arrived."""
    renamed: bool = False
    """The model's name for the tool was nearly right."""
    offered: bool = True
    """False: the client did not declare the tool. True if it declared no tools at all."""

    @property
    def outcome(self) -> str:
        """The result in one word, for metrics."""
        if self.dropped is not None:
            return self.dropped
        if not self.complete:
            return "cut"
        if self.problems:
            return "invalid" if self.offered else "not_offered"
        return "mended" if self.rules else "valid"

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that fired, in order: about the call itself, then about its arguments."""
        if not (self.fixes or self.renamed or self.recovered is not None or self.dropped is not None):
            return ()  # nearly always
        about = (
            (TOOL_NAME, self.renamed),
            (CALL_IN_TEXT, self.recovered is not None),
            (REPEATED_CALL, self.dropped == "duplicate"),
        )
        return (*(rule for rule, fired in about if fired), *(fix.rule for fix in self.fixes))
