"""One exchange in one line: what a list of exchanges shows."""

from __future__ import annotations

import msgspec

from ...model.events import Usage
from ..tap import Track

_GOOD = frozenset({"ok", "running"})


class Tokens(msgspec.Struct, frozen=True):
    """What was counted, in tokens. `input` is all of the prompt, what came from a cache included."""

    input: int
    output: int
    cached_input: int
    reasoning: int
    cache_written: int = 0


class Summary(msgspec.Struct, frozen=True):
    """What is said of an exchange in a list."""

    id: str
    at: float
    """When it began: seconds since the epoch."""
    client: str
    profile: str | None
    model: str
    """What the client asked for."""
    target: str | None
    upstream_protocol: str | None
    provider: str | None = None
    """The entry of `providers.toml` that the upstream was made from."""
    stream: bool = False
    outcome: str = "running"
    """`running`, `ok`, `cancelled`, or what kind of failure it was."""
    status: int = 0
    seconds: float = 0.0
    first_event: float | None = None
    usage: Tokens | None = None
    cost: float | None = None
    """In US dollars; known when somebody looks."""
    calls: int = 0
    mended: int = 0
    """How many of the calls differ from what the upstream sent, by which `rules`."""
    invalid: int = 0
    """How many whole calls the client got that do not fit their schema, and no rule could help."""
    warnings: int = 0
    rules: tuple[str, ...] = ()
    error: str | None = None
    bytes_in: int = 0
    """From the upstream."""
    bytes_out: int = 0
    """To the client."""
    recorded: bool = False
    """Are its bytes still in this process's memory?"""

    @property
    def failed(self) -> bool:
        return self.outcome not in _GOOD

    @property
    def words(self) -> str:
        """What a search looks through."""
        who = f"{self.id} {self.client} {self.profile or ''} {self.model} {self.target or ''} {self.outcome}"
        said = f"{who} {self.error or ''} {' '.join(self.rules)}" if self.error or self.rules else who
        return said.lower()


def summary(track: Track, *, recorded: bool | None = None) -> Summary:
    """The exchange as far as it has come. `recorded`: what is said of its bytes, if not what is."""
    choice, failure, first_event = track.choice, track.failure, track.first_event
    upstream = None if choice is None else choice.upstream
    running = track.outcome == "running"
    calls = mended = invalid = 0
    rules: dict[str, None] = {}
    for receipt in track.receipts:
        if fired := receipt.rules:
            mended += 1
            rules |= dict.fromkeys(fired)
        if receipt.dropped is None:
            calls += 1
            invalid += receipt.complete and bool(receipt.problems)
    # Not by name: more than fifteen names are made a dict first, which takes longer than all the rest.
    return Summary(
        track.id,
        track.at,
        track.client,
        track.profile,
        track.model,
        None if choice is None else choice.key,
        None if upstream is None else upstream.protocol,
        None if upstream is None else upstream.provider,
        track.stream,
        track.outcome,
        track.status,
        microseconds(track.elapsed() if running else track.seconds),
        None if first_event is None else microseconds(first_event),
        tokens(track.usage),
        None,  # what it cost is known when somebody looks
        calls,
        mended,
        invalid,
        sum([notice.warning for notice in track.notices]),
        tuple(rules),
        None if failure is None else failure.message,
        track.bytes_in,
        track.bytes_out,
        track.keeps if recorded is None else recorded,
    )


def microseconds(seconds: float) -> float:
    """`seconds` without what is finer. For so few digits `round` takes long."""
    return (seconds * 1e6 + 0.5) // 1 / 1e6


def tokens(usage: Usage) -> Tokens | None:
    if not usage.known:
        return None
    return Tokens(
        usage.prompt,
        usage.output or 0,
        usage.cache_read or 0,
        usage.reasoning or 0,
        usage.cache_write or 0,
    )
