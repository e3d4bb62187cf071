"""Follow a gateway: print each exchange when it ends, and reconnect if the connection breaks."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

import msgspec

from ...credentials.secret import Secret
from ...observe.receipts import ExchangeSummary, parse_query
from ...observe.receipts.query import matches
from .client import GatewayClient, Unreachable
from .lines import detail_lines, one_line
from .screen import Screen

# Seconds between two redraws of the running exchanges; only a terminal shows them.
_TICK = 0.5
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 5.0
_REMEMBERED = 5000
ALL = 1000
"""The most past exchanges that one page has."""


class TailOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command line."""

    url: str
    key: Secret | None = None
    as_json: bool = False
    last: int = 10
    """How many past exchanges to show first."""
    query: Mapping[str, str] = {}
    """The filters, as parameters of `GET /exchanges`."""


async def follow(options: TailOptions, screen: Screen) -> None:
    """Show exchanges until interrupted. Raises `Unreachable` if the first connection fails."""
    ticking = asyncio.create_task(_tick(screen))
    try:
        async with GatewayClient(options.url, options.key) as gateway:
            await _Tail(options, screen, gateway).run()
    finally:
        ticking.cancel()
        screen.close()


async def _tick(screen: Screen) -> None:
    while True:
        await asyncio.sleep(_TICK)
        screen.refresh()


class _Tail:
    def __init__(self, options: TailOptions, screen: Screen, gateway: GatewayClient) -> None:
        self._settings = options
        self._wanted = parse_query(options.query)
        self._screen = screen
        self._gateway = gateway
        self._printed: dict[str, None] = {}
        self._newest = 0.0

    async def run(self) -> None:
        """Print exchanges forever. After a reconnect, first print the exchanges that were missed."""
        wait = 0.0
        while True:
            try:
                async with self._gateway.live() as events:
                    await self._catch_up(first=not wait)
                    wait = _FIRST_WAIT
                    async for summary in events:
                        await self._take(summary)
            except Unreachable as error:
                if not wait:
                    raise
                self._screen.lost(error.message)
            else:
                self._screen.lost("the gateway ended the stream")
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    async def _catch_up(self, *, first: bool) -> None:
        limit = self._settings.last if first else ALL
        since = {} if first else {"since": repr(self._newest)}
        if limit:
            for summary in reversed(await self._gateway.recent({**self._settings.query, **since}, limit)):
                await self._take(summary)

    async def _take(self, summary: ExchangeSummary) -> None:
        if summary.outcome == "running":
            if summary.id not in self._printed and self._may_match(summary):
                self._screen.running(summary)
            return
        self._screen.over(summary.id)
        if summary.id in self._printed or not matches(summary, self._wanted):
            return
        self._remember(summary)
        if self._settings.as_json:
            self._screen.print([msgspec.json.encode(summary).decode()])
        else:
            self._screen.print([one_line(summary), *await self._detail_lines(summary)])

    def _may_match(self, summary: ExchangeSummary) -> bool:
        """Does a running exchange match the filters that do not depend on its end?"""
        about = msgspec.structs.replace(
            self._wanted, slow=None, failed=False, mended=False, rule=None, status=None, outcome=None
        )
        return matches(summary, about)

    async def _detail_lines(self, summary: ExchangeSummary) -> list[str]:
        detail = None
        if summary.calls or summary.mended:
            # If the receipt is gone by now, print the exchange without its details.
            with contextlib.suppress(Unreachable):
                detail = await self._gateway.receipt(summary.id)
        return detail_lines(summary, detail)

    def _remember(self, summary: ExchangeSummary) -> None:
        self._newest = max(self._newest, summary.at)
        self._printed[summary.id] = None
        if len(self._printed) > _REMEMBERED:
            del self._printed[next(iter(self._printed))]
