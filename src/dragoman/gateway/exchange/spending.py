"""Reserve what an exchange may use of the limits of its key and team, and settle what it used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from ...access.identity import Identity
from ...access.limiter import Admission
from ...access.meters import BudgetMeter, Meter, RateMeter, Use
from ...config.limits import MICRO
from ...config.types import UpstreamConfig
from ...model.errors import DragomanError, Fault
from ...model.events import NO_USAGE, Usage
from ...model.messages import Request
from ...observe.tap import Track
from ...routing.router import ChosenTarget
from ...routing.token_estimate import parts_tokens, prompt_tokens
from ..state import State
from ..upstreams.keyring import NO_OUTGOING_HEADERS

if TYPE_CHECKING:
    from .answer_attempt import AnswerAttempt


class CannotCount(DragomanError):
    """The key has a budget, and what the request uses will never be known."""

    status = 403
    fault: Fault = "client"


class Spending:
    """The limits of one exchange, and what it uses of them. Most keys have none."""

    __slots__ = ("_admission", "_counts", "_limits", "_micros", "_prompt", "_state", "_tokens", "_track")

    def __init__(self, state: State, track: Track) -> None:
        self._state = state
        self._limits: tuple[Meter, ...] = ()
        self._track = track
        self._admission: Admission | None = None
        self._prompt = 0
        self._tokens = 0
        self._micros = 0
        self._counts = False
        """Must tokens be counted, and not only requests?"""

    def limited_by(self, identity: Identity) -> None:
        """The limits are those of this key and its team."""
        self._limits = self._state.limiter.meters(identity)
        self._counts = any(_counts_tokens(meter) for meter in self._limits)

    async def reserve(self, request: Request, choose: Callable[[], tuple[ChosenTarget, ...]]) -> None:
        """Reserve what `request` may use. Raises LimitReached, or NoRoute from `choose`."""
        if self._limits:
            await self._admit(self._estimate(request, choose()[0]) if self._counts else Use())

    async def reserve_tokens(self, choice: ChosenTarget, tokens: int) -> None:
        """The same for a request that passes as it is, by an estimate of its tokens."""
        if self._limits:
            use = Use(tokens, self._price(choice.upstream, choice.model, Usage(input=tokens, output=0)))
            await self._admit(use if self._counts else Use())

    def refuse_uncounted(self, work: str) -> None:
        """Refuse a batch to a key with a budget: its cost is unknown, so the budget could not be enforced."""
        for meter in self._limits:
            if isinstance(meter, BudgetMeter):
                raise CannotCount(
                    f"{meter.owner} has a budget ({meter.shown}), and what {work} use is not known when they "
                    "are made: send the requests one by one, or use a key without a budget"
                )

    async def _admit(self, use: Use) -> None:
        self._admission = await self._state.limiter.admit(self._limits, use)
        self._track.warn_of_limits(*self._admission.warnings)

    def _estimate(self, request: Request, choice: ChosenTarget) -> Use:
        self._prompt = prompt_tokens(request)
        most = self._state.upstreams.limits.of(choice.upstream, choice.model).max_output
        asked = request.settings.max_tokens or most or choice.upstream.facts.default_max_tokens
        output = asked if most is None else min(asked, most)
        micros = self._price(choice.upstream, choice.model, Usage(input=self._prompt, output=output))
        return Use(self._prompt + output, micros)

    def count_attempt(self, choice: ChosenTarget, attempt: AnswerAttempt, *, left: bool = False) -> None:
        """Count one attempt. Failed attempts cost money too. `left`: the client did not wait for its end."""
        if not self._counts:
            return
        self.count_usage(choice.upstream, choice.model, _usage_of(attempt, self._prompt, left=left))

    def count_usage(self, upstream: UpstreamConfig, model: str, usage: Usage) -> None:
        """Count the tokens and the cost of one answer."""
        if usage is NO_USAGE or not self._counts:
            return
        self._tokens += usage.prompt + (usage.output or 0)
        micros = self._price(upstream, model, usage)
        self._micros += micros or 0
        if micros is None:
            self._warn_uncounted(f"the price of {upstream.name}/{model} is unknown", ("money",))

    def count_passed(self, upstream: UpstreamConfig, model: str, usage: Usage) -> None:
        """The same for an answer that passed as it is: nobody can estimate what an image costs."""
        self.count_usage(upstream, model, usage)
        if not usage.known:
            self._warn_uncounted(f"{upstream.name}/{model} sent no token counts", ("money", "tokens"))

    def _price(self, upstream: UpstreamConfig, model: str, usage: Usage) -> int | None:
        cost = self._state.prices.cost(upstream, model, usage, self._track.at)
        return None if cost is None else round(cost * MICRO)

    def _warn_uncounted(self, why: str, units: tuple[str, ...]) -> None:
        """Note on the receipt which budgets do not count an answer."""
        for meter in self._limits:
            if isinstance(meter, BudgetMeter) and meter.budget.unit in units:
                self._track.warn_of_limits(f"{meter.owner}: {meter.shown} does not count it, {why}")

    async def settle(self) -> None:
        """Replace what was reserved by what was used. Call this before the client knows that it is over."""
        if self._admission is not None:
            await self._state.limiter.settle(self._admission, Use(self._tokens, self._micros))

    def settle_later(self) -> None:
        """The same in the background, if it was not done: the client left, or the gateway failed."""
        if self._admission is not None:
            self._state.limiter.settle_later(self._admission, Use(self._tokens, self._micros))


def _counts_tokens(meter: Meter) -> bool:
    return isinstance(meter, BudgetMeter) or (isinstance(meter, RateMeter) and meter.what == "tokens")


def _usage_of(attempt: AnswerAttempt, prompt: int, *, left: bool) -> Usage:
    """What an attempt used: the upstream's counts, or an estimate from the texts. `prompt` is estimated."""
    translation = attempt.translation
    if translation is None or attempt.sent_headers is NO_OUTGOING_HEADERS:
        return NO_USAGE  # nothing was sent
    usage = translation.usage
    ended = translation.over and translation.failure is None
    if ended and usage.known:
        return usage
    written = round(parts_tokens(attempt.answer.parts))
    if not (usage.known or written or left or ended):
        return NO_USAGE  # the upstream refused the request
    return msgspec.structs.replace(
        usage,
        input=prompt if usage.input is None else usage.input,
        output=max(usage.output or 0, written),
    )


async def count_only(state: State, identity: Identity) -> None:
    """Count a request that only counts tokens. Agents send many, so they have a window of their own."""
    limits = tuple(
        RateMeter(meter.owner, "token counts", meter.rate)
        for meter in state.limiter.meters(identity)
        if isinstance(meter, RateMeter) and meter.what == "requests"
    )
    if limits:
        await state.limiter.admit(limits, Use())
