"""From a name to a socket: the addresses of a host, and the first of them that takes a connection."""

from __future__ import annotations

import asyncio
import socket
from itertools import chain, zip_longest
from time import monotonic
from typing import Any

Address = tuple[int, Any]
"""Family, and what a socket of it connects to."""

_FRESH = 60.0  # seconds
# An address that has not answered by then gets a rival (RFC 8305).
_HEAD_START = 0.25


class Addresses:
    """What names stand for, remembered for a minute: many connections at once ask once."""

    __slots__ = ("_asking", "_known")

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[float, list[Address]]] = {}
        self._asking: dict[tuple[str, int], asyncio.Task[list[Address]]] = {}

    async def dial(self, host: str, port: int) -> socket.socket:
        """A connected socket. `socket.gaierror`: no such host; another OSError: nobody takes it."""
        try:
            return await _first(await self._of(host, port))
        except OSError:
            self._known.pop((host, port), None)  # it may have moved
            raise

    def close(self) -> None:
        for task in self._asking.values():
            task.cancel()

    async def _of(self, host: str, port: int) -> list[Address]:
        key = (host, port)
        until, addresses = self._known.get(key, (0.0, []))
        if monotonic() < until:
            return addresses
        try:  # a numeric one needs nobody to be asked
            return _sorted(_numeric(host, port))
        except (socket.gaierror, UnicodeError):
            pass
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.get_running_loop().create_task(self._ask(host, port))
            task.add_done_callback(lambda done: self._asked(key, done))
        return await asyncio.shield(task)

    async def _ask(self, host: str, port: int) -> list[Address]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except UnicodeError:  # a part of the name is too long, or missing
            raise socket.gaierror(socket.EAI_NONAME, "no such host") from None
        return _sorted([(family, address) for family, _, _, _, address in found])

    def _asked(self, key: tuple[str, int], task: asyncio.Task[list[Address]]) -> None:
        del self._asking[key]
        if not task.cancelled() and task.exception() is None:
            self._known[key] = (monotonic() + _FRESH, task.result())


def _numeric(host: str, port: int) -> list[Address]:
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, address) for family, _, _, _, address in found]


def _sorted(addresses: list[Address]) -> list[Address]:
    """In the system's order, but families by turns: the first one's network may lead nowhere."""
    first = [address for address in addresses if address[0] == addresses[0][0]]
    others = [address for address in addresses if address[0] != addresses[0][0]]
    return [address for address in chain(*zip_longest(first, others)) if address is not None]


async def _first(addresses: list[Address]) -> socket.socket:
    """The first that is connected; the next begins when one has failed, or has had its time."""
    if len(addresses) == 1:
        return await _connected(addresses[0])
    trying: set[asyncio.Task[socket.socket]] = set()
    failure: OSError | None = None
    try:
        for address in [*addresses, None]:
            if address is not None:
                trying.add(asyncio.get_running_loop().create_task(_connected(address)))
            while trying:
                patience = None if address is None else _HEAD_START
                done, trying = await asyncio.wait(
                    trying, timeout=patience, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    error = task.exception()
                    if error is None:
                        return task.result()
                    failure = failure or (error if isinstance(error, OSError) else None)
                if address is not None:
                    break
        raise failure or OSError("there is no address")
    finally:
        await _dropped(trying)


async def _connected(address: Address) -> socket.socket:
    family, where = address
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, where)
    except BaseException:
        sock.close()
        raise
    return sock


async def _dropped(trying: set[asyncio.Task[socket.socket]]) -> None:
    """The slower ones are not waited for, and leave nothing open."""
    for task in trying:
        task.cancel()
    for late in await asyncio.gather(*trying, return_exceptions=True):
        if isinstance(late, socket.socket):
            late.close()
