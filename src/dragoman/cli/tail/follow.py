"""Following a gateway: a line for each exchange as it ends, whatever becomes of the connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

import msgspec

from ...credentials.secret import Secret
from ...observe.receipts import Summary, asked_for
from ...observe.receipts.query import fits
from .gateway import Gateway, Unreachable
from .lines import one_line, under
from .screen import Screen

# A running exchange's clock moves so often; only a terminal shows it.
_TICK = 0.5
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 5.0
_REMEMBERED = 5000


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    url: str
    key: Secret | None = None
    as_json: bool = False
    last: int = 10
    """How many exchanges of before are shown first."""
    query: Mapping[str, str] = {}
    """The filters, as `GET /exchanges` takes them."""


async def follow(settings: Settings, screen: Screen) -> None:
    """Show exchanges until interrupted. Raises Unreachable if the gateway was never there."""
    ticking = asyncio.create_task(_tick(screen))
    try:
        async with Gateway(settings.url, settings.key) as gateway:
            await _Tail(settings, screen, gateway).run()
    finally:
        ticking.cancel()
        screen.close()


async def _tick(screen: Screen) -> None:
    while True:
        await asyncio.sleep(_TICK)
        screen.refresh()


class _Tail:
    def __init__(self, settings: Settings, screen: Screen, gateway: Gateway) -> None:
        self._settings = settings
        self._wanted = asked_for(settings.query)
        self._screen = screen
        self._gateway = gateway
        self._printed: dict[str, None] = {}
        self._newest = 0.0

    async def run(self) -> None:
        """Connected or not, it goes on; what happened meanwhile is caught up with."""
        wait = 0.0
        while True:
            try:
                async with self._gateway.live() as events:
                    await self._catch_up(first=not wait)
                    wait = _FIRST_WAIT
                    async for said in events:
                        await self._heard(said)
            except Unreachable as error:
                if not wait:
                    raise
                self._screen.lost(error.message)
            else:
                self._screen.lost("the gateway ended the stream")
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    async def _catch_up(self, *, first: bool) -> None:
        limit = self._settings.last if first else 1000
        since = {} if first else {"since": repr(self._newest)}
        if limit:
            for said in reversed(await self._gateway.recent({**self._settings.query, **since}, limit)):
                await self._heard(said)

    async def _heard(self, said: Summary) -> None:
        if said.outcome == "running":
            if said.id not in self._printed and self._may_fit(said):
                self._screen.running(said)
            return
        self._screen.over(said.id)
        if said.id in self._printed or not fits(said, self._wanted):
            return
        self._remember(said)
        if self._settings.as_json:
            self._screen.print([msgspec.json.encode(said).decode()])
        else:
            self._screen.print([one_line(said), *await self._told(said)])

    def _may_fit(self, said: Summary) -> bool:
        """How it ends is not known yet: what it is about is."""
        about = msgspec.structs.replace(
            self._wanted, slow=None, failed=False, mended=False, rule=None, status=None, outcome=None
        )
        return fits(said, about)

    async def _told(self, said: Summary) -> list[str]:
        detail = None
        if said.calls or said.mended:
            # A receipt that is gone meanwhile costs the lines under this one, not the stream.
            with contextlib.suppress(Unreachable):
                detail = await self._gateway.receipt(said.id)
        return under(said, detail)

    def _remember(self, said: Summary) -> None:
        self._newest = max(self._newest, said.at)
        self._printed[said.id] = None
        if len(self._printed) > _REMEMBERED:
            del self._printed[next(iter(self._printed))]
