"""What a client knows of each origin: how it is reached, and whether a connection may have been kept."""

from __future__ import annotations

import math
from time import monotonic

import msgspec

from ..urls import Url
from .contract import Network
from .proxies import proxy_for

KEPT = 15.0
"""Seconds a connection lies unused before it is closed."""
# Servers allow about a hundred streams on an HTTP/2 connection; the library lets any more wait. So every 64
# requests that run at the same time get a connection of their own.
_STREAMS = 64


class Way(msgspec.Struct, frozen=True):
    """All that requests on one pool of connections have in common."""

    network: Network
    proxy: str | None
    secure: bool
    """Is a TLS connection made?"""
    connect_timeout: float
    lane: int
    """See `_STREAMS`."""
    kept: bool
    """May its connections be used again?"""


class Route:
    """The way to one origin."""

    __slots__ = ("_answering", "_lanes", "_used", "multiplexed", "network", "proxy", "url")

    def __init__(self, url: Url, network: Network) -> None:
        self.url = url
        self.network = network
        self.proxy = proxy_for(url, network)
        self.multiplexed = url.scheme == "https"
        """Does it speak HTTP/2? Supposed of every https server until it has answered."""
        self._lanes = [0]
        """The number of requests that run, for each lane."""
        self._answering = 0
        """The number of answers that have begun and are not over."""
        self._used = -math.inf

    def may_have_kept(self, since: float) -> bool:
        """May a request that was begun at `since` have got a connection that was used before?

        The library does not tell. It also gives a request that waits for its connection one that becomes free
        in the meantime, as soon as the last byte of an answer is there.
        """
        return self._answering > 0 or self._used >= since - KEPT - 1

    def way(self, connect_timeout: float, lane: int, *, kept: bool = True) -> Way:
        secure = self.url.scheme == "https" or (self.proxy or "").startswith("https:")
        return Way(self.network, self.proxy, secure, connect_timeout, lane, kept)

    def enter(self) -> int:
        """The lane for one more request."""
        lanes = self._lanes
        lane = next((at for at, running in enumerate(lanes) if running < _STREAMS), len(lanes))
        if lane == len(lanes):
            if self.multiplexed:
                lanes.append(0)
            else:
                lane = 0
        lanes[lane] += 1
        return lane

    def leave(self, lane: int) -> None:
        self._lanes[lane] -= 1

    def begin_answer(self) -> None:
        self._answering += 1

    def end_answer(self) -> None:
        self._answering -= 1
        self._used = monotonic()
