"""The neutral answer: the events that a model's answer consists of, in any protocol.

An answer is a `Start`, then blocks, then one `End` or one `Failed`. A block opens with a `BlockStart` that
holds an empty part (`Text`, `Thinking`, `ToolCall`, …), grows by deltas, and closes with a `BlockEnd`.
Several blocks may be open at the same time, because OpenAI Chat interleaves parallel calls. `order.py`
defines which event may follow which. Dragoman assigns the block numbers: unique within an answer, in order of
first appearance.

Members of the upstream's frame that no field of the event holds are in its `extras`, if the client speaks
the upstream's protocol. They have the names of that protocol, and the protocol's encoder puts them back.

Events are frozen and small, because every token of every stream becomes one.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from .messages import Citation, Extras, Part, Seal


class Stop(StrEnum):
    """The neutral stop reasons."""

    END = "end"
    TOOL = "tool"
    MAX_TOKENS = "max_tokens"
    CONTEXT_FULL = "context_full"
    STOP_SEQUENCE = "stop_sequence"
    REFUSAL = "refusal"
    FILTER = "filter"
    PAUSE = "pause"


class FailureKind(StrEnum):
    """The neutral error kinds. `protocols/common/failures.py` maps them to HTTP statuses."""

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
    """Token counts. `None` means "unknown". The whole prompt is `input + cache_read + cache_write`."""

    input: int | None = None
    """Prompt tokens that were neither read from the cache nor written to it."""
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    """All output tokens, reasoning included."""
    reasoning: int | None = None
    tool_prompt: int | None = None
    """Prompt tokens of server tools. Gemini counts them separately (`toolUsePromptTokenCount`)."""

    def updated(self, newer: Usage) -> Usage:
        """Apply `newer` counts. Counts are cumulative in every protocol, so later ones replace earlier ones.

        Input may shrink: Anthropic sends smaller counts after compaction. Output only grows, because the
        client may already have the larger count.
        """
        counts = msgspec.structs.astuple(newer)
        if self is NO_USAGE:
            for count in counts:
                if count and count < 0:
                    break  # servers send -1 for "unknown"
            else:
                return newer
        pairs = zip(self.counts(), counts, strict=True)
        updated = Usage(*[before if now is None or now < 0 else now for before, now in pairs])
        if self.output is not None and updated.output is not None and updated.output < self.output:
            return msgspec.structs.replace(updated, output=self.output)
        return updated

    def plus(self, other: Usage) -> Usage:
        """The sum of the counts of two answers."""
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
    """The answer began. An empty `id` or `model` means that the upstream sent none."""

    id: str = ""
    model: str = ""
    created: int | None = None
    extras: Extras | None = None


class BlockStart(msgspec.Struct, frozen=True, gc=False):
    """A block opened. `part` holds what is known at its start: the id and name of a call, a whole image, …"""

    block: int
    part: Part
    extras: Extras | None = None


class TextDelta(msgspec.Struct, frozen=True, gc=False):
    """Text grew, in a text, thinking or refusal block."""

    block: int
    text: str
    separates: bool = False
    """Is the text the blank line between two parts of a reasoning summary? Only Responses has such parts."""
    extras: Extras | None = None


class ArgumentsDelta(msgspec.Struct, frozen=True, gc=False):
    """The arguments of a call grew by a fragment of JSON, or of a freeform tool's text. It need not parse.

    Also the input of an `Opaque` block grows like this.
    """

    block: int
    text: str
    extras: Extras | None = None


class CitationAdded(msgspec.Struct, frozen=True, gc=False):
    """A text block got a citation."""

    block: int
    citation: Citation
    extras: Extras | None = None


class Sealed(msgspec.Struct, frozen=True, gc=False):
    """A block got its seal: opaque reasoning such as a signature. A later seal replaces an earlier one."""

    block: int
    seal: Seal
    extras: Extras | None = None


class BlockEnd(msgspec.Struct, frozen=True, gc=False):
    """A block closed. `complete` is False for a call that was cut off: the client must not run it."""

    block: int
    complete: bool = True
    extras: Extras | None = None


class UsageSeen(msgspec.Struct, frozen=True, gc=False):
    """The upstream sent token counts."""

    usage: Usage
    extras: Extras | None = None


class Ping(msgspec.Struct, frozen=True, gc=False):
    """A keepalive of the upstream."""

    extras: Extras | None = None


class Carried(msgspec.Struct, frozen=True, gc=False):
    """Members that no other event carries.

    Their frame has no other content, or the client gets the content later, elsewhere or not at all.
    """

    extras: Extras
    block: int | None = None
    """The open block that the frame belongs to. None: the answer as a whole."""


class Unknown(msgspec.Struct, frozen=True, gc=False):
    """A frame without neutral meaning. Only a client that speaks `protocol` too gets it, unchanged."""

    protocol: str
    event: str
    data: bytes
    block: int | None = None
    """The open block that the frame names by its index; None: it names none."""


class End(msgspec.Struct, frozen=True, gc=False):
    """The answer ended normally."""

    stop: Stop
    sequence: str | None = None
    """The stop sequence that matched."""
    detail: str | None = None
    """More detail than `stop`, as the upstream wrote it: `RECITATION`, or the explanation of a refusal."""
    extras: Extras | None = None


class Failed(msgspec.Struct, frozen=True, gc=False):
    """The answer failed. No event follows."""

    kind: FailureKind
    message: str
    status: int = 502
    code: str | None = None
    """The upstream's own error code or type."""
    retry_after: float | None = None
    param: str | None = None
    """The field of the upstream's request that it complains of."""
    used_up: bool = False
    """A quota or credit of the key is used up. The same key fails again until the quota is renewed."""
    extras: Extras | None = None


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
    | Carried
    | Unknown
    | End
    | Failed
)
DELTAS = (TextDelta, ArgumentsDelta)
"""The events that add text to a block."""
