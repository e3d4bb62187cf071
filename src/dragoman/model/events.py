"""The neutral response: what a model's answer is made of, whatever wire it came over.

An answer is a `Start`, then blocks, then one `End` or one `Failed`. A block opens with `BlockStart`
carrying an empty part (`Text`, `Thinking`, `ToolCall`, …), grows by deltas, and closes with `BlockEnd`.
Blocks may be open at the same time: OpenAI Chat interleaves parallel calls. `order.py` says what may
follow what. Block numbers are ours: unique within an answer, in order of first appearance.

Events are frozen and small because one is made for every token of every stream.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from .messages import Citation, Part, Seal


class Stop(StrEnum):
    """Why the model stopped, in our words (protocols.md table 2.1)."""

    END = "end"
    TOOL = "tool"
    MAX_TOKENS = "max_tokens"
    CONTEXT_FULL = "context_full"
    STOP_SEQUENCE = "stop_sequence"
    REFUSAL = "refusal"
    FILTER = "filter"
    PAUSE = "pause"


class FailureKind(StrEnum):
    """Error classes that every protocol can name; the status table is in `protocols/failures.py`."""

    INVALID_REQUEST = "invalid_request"
    AUTHENTICATION = "authentication"
    BILLING = "billing"
    PERMISSION = "permission"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    TOO_LARGE = "too_large"
    RATE_LIMIT = "rate_limit"
    SERVER = "server"
    TIMEOUT = "timeout"
    OVERLOADED = "overloaded"
    UPSTREAM = "upstream"


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Token counts; `None` is "not said". All input is `input + cache_read + cache_write`."""

    input: int | None = None
    """Prompt tokens that were neither read from nor written to a cache."""
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    """All output tokens, reasoning included."""
    reasoning: int | None = None
    tool_prompt: int | None = None
    """Gemini counts the prompt tokens of its server tools apart."""

    def updated(self, newer: Usage) -> Usage:
        """Counts are cumulative on every wire: what is said later replaces what was said before.

        Output only grows: a client that was told a count is not told a smaller one.
        """
        counts = msgspec.structs.astuple(newer)
        if self is NO_USAGE:
            for count in counts:
                if count and count < 0:
                    break  # a count below zero says nothing
            else:
                return newer
        pairs = zip(self.counts(), counts, strict=True)
        updated = Usage(*[before if now is None or now < 0 else now for before, now in pairs])
        if self.output is not None and updated.output is not None and updated.output < self.output:
            return msgspec.structs.replace(updated, output=self.output)
        return updated

    def plus(self, other: Usage) -> Usage:
        """The counts of two answers together."""
        return Usage(*(_added(a, b) for a, b in zip(self.counts(), other.counts(), strict=True)))

    def counts(self) -> tuple[int | None, ...]:
        return msgspec.structs.astuple(self)

    @property
    def known(self) -> bool:
        return self.input is not None or self.output is not None

    @property
    def prompt(self) -> int:
        """All prompt tokens, cached ones included."""
        return (self.input or 0) + (self.cache_read or 0) + (self.cache_write or 0)


def _added(a: int | None, b: int | None) -> int | None:
    return None if a is None and b is None else (a or 0) + (b or 0)


NO_USAGE = Usage()


class Start(msgspec.Struct, frozen=True, gc=False):
    """The answer began. An empty id or model means the upstream gave none."""

    id: str = ""
    model: str = ""
    created: int | None = None
    extras: dict[str, Any] | None = None
    """Unknown top-level fields, given back to the same protocol only."""


class BlockStart(msgspec.Struct, frozen=True, gc=False):
    """A block opened. `part` has what is known at once: a call's id and name, a whole image, …"""

    block: int
    part: Part


class TextDelta(msgspec.Struct, frozen=True, gc=False):
    """Text grew, in a text, thinking or refusal block."""

    block: int
    text: str


class ArgumentsDelta(msgspec.Struct, frozen=True, gc=False):
    """A call's arguments grew: a piece of JSON (or of a freeform tool's text), never assumed to parse."""

    block: int
    text: str


class CitationAdded(msgspec.Struct, frozen=True, gc=False):
    """A source was named for a text block."""

    block: int
    citation: Citation


class Sealed(msgspec.Struct, frozen=True, gc=False):
    """Opaque reasoning for a block became known (a signature, encrypted content). Set, not appended."""

    block: int
    seal: Seal


class BlockEnd(msgspec.Struct, frozen=True, gc=False):
    """A block closed. `complete` is False for a call that was cut off: it must not be run."""

    block: int
    complete: bool = True


class UsageSeen(msgspec.Struct, frozen=True, gc=False):
    """Counts became known, or better known."""

    usage: Usage


class Ping(msgspec.Struct, frozen=True, gc=False):
    """The upstream is alive and has nothing to say."""


class Unknown(msgspec.Struct, frozen=True, gc=False):
    """A frame of `protocol` that means nothing to us; given back verbatim to the same protocol."""

    protocol: str
    event: str
    data: bytes


class End(msgspec.Struct, frozen=True, gc=False):
    """The answer is over and whole."""

    stop: Stop
    sequence: str | None = None
    """The stop sequence that matched."""
    detail: str | None = None
    """The upstream's own word where it says more than ours: `RECITATION`, a refusal's explanation."""
    extras: dict[str, Any] | None = None


class Failed(msgspec.Struct, frozen=True, gc=False):
    """The answer broke off. Nothing follows."""

    kind: FailureKind
    message: str
    status: int = 502
    code: str | None = None
    """The upstream's own error code or type, for people."""
    retry_after: float | None = None
    param: str | None = None
    """The field of the upstream's request that it complains of."""


Event = (
    Start
    | BlockStart
    | TextDelta
    | ArgumentsDelta
    | CitationAdded
    | Sealed
    | BlockEnd
    | UsageSeen
    | Ping
    | Unknown
    | End
    | Failed
)
DELTAS = (TextDelta, ArgumentsDelta)
"""What makes a block grow."""
