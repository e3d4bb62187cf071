"""The summary of an exchange, as lists of exchanges show it."""

from __future__ import annotations

import msgspec

from ...model.events import Usage
from ..tap import Track

_GOOD = frozenset({"ok", "running"})


class Tokens(msgspec.Struct, frozen=True):
    """Token counts. `input` is the whole prompt, including cached tokens."""

    input: int
    output: int
    cached_input: int
    reasoning: int
    cache_written: int = 0


class ExchangeSummary(msgspec.Struct, frozen=True):
    """One exchange in a list of exchanges."""

    id: str
    at: float
    """The start: seconds since the epoch."""
    client: str
    profile: str | None
    model: str
    """The model that the client requested."""
    target: str | None
    upstream_protocol: str | None
    provider: str | None = None
    """The upstream's entry in `providers.toml`."""
    stream: bool = False
    outcome: str = "running"
    """`running`, `ok`, `cancelled`, or the kind of failure."""
    status: int = 0
    seconds: float = 0.0
    first_event: float | None = None
    usage: Tokens | None = None
    """Of all attempts, and of the descriptions of images for this request; of the answer while it runs."""
    cost: float | None = None
    """In US dollars, at the prices of the day; None: unknown, or the exchange still runs."""
    calls: int = 0
    mended: int = 0
    """The number of calls that `rules` changed."""
    invalid: int = 0
    """The number of complete calls that do not fit their schema and that no rule could mend."""
    warnings: int = 0
    rules: tuple[str, ...] = ()
    error: str | None = None
    bytes_in: int = 0
    """From the upstream."""
    bytes_out: int = 0
    """To the client."""
    recorded: bool = False
    """This process still has the bytes in memory."""
    key: str = ""
    """The name of the client's key; empty for a key without a name."""
    team: str = ""
    session: str = ""
    """The conversation: 16 hexadecimal digits, or empty if it is not known."""
    opening: str = ""
    """The first words of the user in this conversation. Only in stored receipts."""

    @property
    def upstream(self) -> str:
        return (self.target or "").partition("/")[0]

    @property
    def failed(self) -> bool:
        return self.outcome not in _GOOD

    @property
    def words(self) -> str:
        """The text that a search looks through."""
        text = f"{self.id} {self.client} {self.profile or ''} {self.model} {self.target or ''} {self.outcome}"
        if self.error or self.rules:
            text = f"{text} {self.error or ''} {' '.join(self.rules)}"
        if self.key:
            text = f"{text} {self.key} {self.team}"
        return text.lower()


def summary(track: Track, *, recorded: bool | None = None, opening: str = "") -> ExchangeSummary:
    """The summary of an exchange, even of a running one. `recorded` overrides the member of that name.

    The user's words may hold a secret that only this exchange knows. So they are left out unless the caller
    gives `opening`, and removes the secrets of the exchange.
    """
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
    return ExchangeSummary(
        id=track.id,
        at=track.at,
        client=track.client,
        profile=track.profile,
        model=track.model,
        target=None if choice is None else choice.key,
        upstream_protocol=None if upstream is None else upstream.protocol,
        provider=None if upstream is None else upstream.provider,
        stream=track.stream,
        outcome=track.outcome,
        status=track.status,
        seconds=microseconds(track.elapsed() if running else track.seconds),
        first_event=None if first_event is None else microseconds(first_event),
        usage=tokens(track.usage if running else track.spent),
        cost=None if running else track.cost,
        calls=calls,
        mended=mended,
        invalid=invalid,
        warnings=sum([notice.warning for notice in track.notices]),
        rules=tuple(rules),
        error=None if failure is None else failure.message,
        bytes_in=track.bytes_in,
        bytes_out=track.bytes_out,
        recorded=track.keeps_records if recorded is None else recorded,
        key=track.key,
        team=track.team,
        session=track.session,
        opening=opening,
    )


def microseconds(seconds: float) -> float:
    """`seconds`, rounded to microseconds. Faster than `round`."""
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
