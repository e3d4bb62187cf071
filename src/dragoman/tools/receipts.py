"""What happened to each tool call, as values: what came, what went, and why it differs."""

from __future__ import annotations

import msgspec

from .rules import Fix
from .rules.answer_rules import CALL_IN_TEXT, REPEATED_CALL, TOOL_NAME


class CallReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """One call of one answer."""

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
    """The most that was ever held back of it at one time."""
    held_seconds: float = 0.0
    """How long something of it was held back, by the clock the exchange was given."""
    fixes: tuple[Fix, ...] = ()
    problems: tuple[str, ...] = ()
    dropped: str | None = None
    """Why the client did not get the call at all: `ghost`, `duplicate`, `server-side`."""
    recovered: str | None = None
    """The markup it was found in, where the model wrote the call as text."""
    started: float | None = None
    """When the upstream began it, by the clock the exchange was given."""
    ended: float | None = None
    fragments: int = 0
    """In how many pieces the arguments came."""
    renamed: bool = False
    """The model's name for the tool was nearly right."""
    offered: bool = True
    """False: the client did not declare the tool. Where it declared none at all, that is not known."""

    @property
    def fate(self) -> str:
        """What became of it, in one word, for counting."""
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
            return ()  # as nearly always
        about = (
            (TOOL_NAME, self.renamed),
            (CALL_IN_TEXT, self.recovered is not None),
            (REPEATED_CALL, self.dropped == "duplicate"),
        )
        return (*(rule for rule, fired in about if fired), *(fix.rule for fix in self.fixes))
