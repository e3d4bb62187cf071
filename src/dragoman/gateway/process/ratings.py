"""Keeps the ratings of targets fresh, for routes with `prefer = "reliable"`."""

from __future__ import annotations

import asyncio
import logging

from ...observe.scores import ratings
from ...store import StoreError
from ..state import State

log = logging.getLogger("dragoman.gateway")

# Seconds. Ratings are sums over weeks: fresher ones would hardly differ.
_INTERVAL = 60.0


async def refresh(state: State) -> None:
    """Read the ratings from the store. If it fails, the old ones stay."""
    if not state.upstreams.router.wants_ratings:
        return
    try:
        state.upstreams.rate(await ratings(state.store, state.clock()))
    except StoreError as error:
        log.warning("the ratings of targets cannot be read, and the old ones stay: %s", error.message)


async def watch_ratings(state: State) -> None:
    """Refresh the ratings until this is cancelled."""
    while True:
        await refresh(state)
        await asyncio.sleep(_INTERVAL)
