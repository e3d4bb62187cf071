"""The record of one exchange: who asked for what, what was tried, how it ended, and its bytes.

The gateway writes it through the methods only. The ring, recordings, the inspector, receipts, metrics, traces
and the log read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from ...credentials.secret import Secret
from ...model.events import NO_USAGE, Failed, FailureKind, Usage
from ...model.messages import Notice
from ...tools.receipts import CallReceipt
from ..caching import PromptFingerprint
from .attempt_track import AttemptTrack
from .record_log import RecordLog
from .records import ExchangeEnded, Record, ReplaySetup, UpstreamFailure, UpstreamRequest, without_extras

if TYPE_CHECKING:
    from ...routing.router import ChosenTarget
    from ...translation.translation import Translation
    from .subscribers import Tap

RUNNING, OK, CANCELLED = "running", "ok", "cancelled"


class Track(RecordLog):
    """What happened in one exchange."""

    __slots__ = (
        "_calls", "_translation", "_usage", "at", "attempts", "client", "cost", "failure", "id", "key",
        "limit_warnings", "model", "notices", "opening", "outcome", "profile", "prompt", "result", "seconds",
        "secrets", "session", "spent", "status", "stream", "team",
    )  # fmt: skip

    def __init__(self, tap: Tap, id: str, client: str, at: float) -> None:
        super().__init__(tap)
        self.id = id
        self.client = client
        self.at = at
        self.key = ""
        """The name of the client's key; empty for a key without a name."""
        self.team = ""
        self.secrets: list[Secret] = []
        """Secrets of this exchange, in addition to those of the process."""
        self.limit_warnings: tuple[str, ...] = ()
        """A sentence for each limit that is nearly reached, or that cannot be counted."""
        self.profile: str | None = None
        self.model = ""
        self.stream = False
        self.session = ""
        """The conversation, as a hash."""
        self.opening = ""
        """The first words of the user."""
        self.attempts: list[AttemptTrack] = []
        self.prompt: PromptFingerprint | None = None
        """The fingerprint of the last request to an upstream; see `observe/caching`."""
        self.notices: tuple[Notice, ...] = ()
        """What had to be changed or left out, also of the answer."""
        self.spent = NO_USAGE
        """Token counts of all attempts so far. `usage` is that of the answer alone."""
        self.cost: float | None = 0.0
        """US dollars for all attempts so far; None if the price of one is unknown."""
        self.failure: Failed | None = None
        """The failure that the client got."""
        self.result = CANCELLED
        """The outcome if the exchange ended now: a client that leaves says nothing."""
        self.outcome = RUNNING
        """`running`, and then `ok`, `cancelled` or the kind of failure."""
        self.status = 0
        self.seconds = 0.0
        self._translation: Translation | None = None
        """The running translation of the answer. It has the next two while it runs."""
        self._usage = NO_USAGE
        self._calls: Sequence[CallReceipt] = ()

    def restore(self, records: Sequence[Record]) -> None:
        ended = [record for record in records if isinstance(record, ExchangeEnded)]
        super().restore([record for record in records if not isinstance(record, ExchangeEnded)])
        for end in ended:
            self.outcome, self.status, self.seconds = end.outcome, end.status, end.t
            self.failure, self.dropped = end.failure, end.dropped

    @property
    def choice(self) -> ChosenTarget | None:
        """The target that is or was tried last."""
        return self.attempts[-1].choice if self.attempts else None

    @property
    def first_event(self) -> float | None:
        """Seconds from the start to the first content of an answer."""
        for attempt in self.attempts:
            if attempt.first_event is not None:
                return attempt.began - self.began + attempt.first_event
        return None

    @property
    def usage(self) -> Usage:
        return self._usage if self._translation is None else self._translation.usage

    @property
    def receipts(self) -> Sequence[CallReceipt]:
        """One for each tool call of the answer."""
        return self._calls if self._translation is None else self._translation.receipts

    @property
    def records(self) -> list[Record]:
        found = super().records
        if self.keeps_records and self.outcome != RUNNING:
            found.append(self._end())
        return found

    def asked_by(self, key: str, team: str) -> None:
        self.key, self.team = key, team

    def learn(self, secrets: Iterable[Secret]) -> None:
        """Hide these wherever the exchange is shown."""
        self.secrets += [secret for secret in secrets if secret not in self.secrets]

    def asked_for(self, model: str, *, stream: bool = False, profile: str | None = None) -> None:
        """The client's request was read."""
        self.model, self.stream, self.profile = model, stream, profile

    def belongs_to(self, session: str, opening: str) -> None:
        """The request is a turn of a conversation. `opening`: empty if it is not known here."""
        self.session, self.opening = session, opening

    def warn_of_limits(self, *warnings: str) -> None:
        self.limit_warnings += tuple(one for one in warnings if one not in self.limit_warnings)

    def attempt_started(self, choice: ChosenTarget) -> None:
        self.attempts.append(AttemptTrack(choice))
        if self._tap.subscriptions:
            self._notify()

    def add_notices(self, *notices: Notice) -> None:
        self.notices += notices

    def translation_started(self, translation: Translation, notices: Iterable[Notice]) -> None:
        """The running attempt translates its answers with `translation`.

        `notices` are about its request. They replace those of the attempt before it.
        """
        self._translation = translation
        self.notices = tuple(notices)
        self.attempts[-1].translated = True

    def record_upstream_request(
        self,
        url: str,
        headers: dict[str, str],
        body: bytes,
        setup: ReplaySetup | None,
        *,
        again: bool,
        key: Secret | None = None,
        secrets: Iterable[Secret] = (),
    ) -> None:
        """A request goes to the upstream, with its `key`. `url` and `headers` must not hold secrets.

        `setup` is None if the request passes as it is: nothing is translated, so nothing can be replayed.
        """
        assert self.choice is not None
        self.calls += 1
        self.learn(secrets)
        if key is not None:
            self.attempts[-1].key = key.fingerprint
        name, protocol = self.choice.upstream.name, self.choice.upstream.protocol
        t = monotonic() - self.began
        record = UpstreamRequest(t, self.calls, name, protocol, url, headers, body, again, setup)
        self._add(record, t, len(body))

    def fingerprinted(self, prompt: PromptFingerprint | None) -> None:
        self.prompt = prompt

    def first_content(self) -> None:
        """The first content of the answer arrived."""
        first = self.first_event is None
        attempt = self.attempts[-1]
        attempt.first_event = attempt.elapsed()
        if first and self._tap.subscriptions:
            self._notify()

    def attempt_failed(self, failure: Failed) -> None:
        now = monotonic()
        if self.attempts:
            self.attempts[-1].end(failure, now)
        found_in_bytes = self._translation is not None and self._translation.failure is not None
        t = now - self.began
        self._add(UpstreamFailure(t, self.calls, without_extras(failure), found_in_bytes), t, 0)

    def count(self, usage: Usage, cost: float | None) -> None:
        """Add what an attempt used, or a question that Dragoman asked itself. A `cost` of None: unknown."""
        self.spent = usage if self.spent is NO_USAGE else self.spent.plus(usage)
        self.cost = None if cost is None or self.cost is None else self.cost + cost

    def count_unknown(self) -> None:
        """An upstream answered, and did not say how many tokens that took."""
        self.cost = None

    def succeeded(self) -> None:
        self.result = OK

    def failed(self, failure: Failed) -> None:
        """The client gets this failure."""
        self.result, self.failure = failure.kind.value, without_extras(failure)

    def crashed(self) -> None:
        """A bug of Dragoman ended the exchange."""
        self.result = FailureKind.SERVER.value

    def client_left(self) -> None:
        self.result = CANCELLED

    def ended(self, status: int) -> None:
        """The exchange is over. `status` is the one that the client got, as far as it got one."""
        if self.outcome != RUNNING:
            return
        now = monotonic()
        self.seconds, self.status, self.outcome = now - self.began, status, self.result
        if self.attempts:
            self.attempts[-1].end(self.failure, now)
        # Keep only these two: the translation itself is large.
        self._usage, self._calls, self._translation = self.usage, self.receipts, None
        size = sum([len(receipt.received) + len(receipt.sent) for receipt in self._calls])
        self._close(size)
        if self._tap.subscriptions:
            self._publish(self._end(), size)
        self._tap.ended(self)

    def _end(self) -> ExchangeEnded:
        """Built on demand: the track has all its members anyway."""
        return ExchangeEnded(self.seconds, self.outcome, self.status, self.failure, self.dropped)

    def _put(self, record: Record, size: int) -> None:
        for subscription in self._tap.record_subscriptions:
            if not subscription.put(self, record, size):
                self.dropped += 1

    def _notify(self) -> None:
        for subscription in self._tap.subscriptions:
            subscription.notify(self)
