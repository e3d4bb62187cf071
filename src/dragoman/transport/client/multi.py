"""libcurl's multi handle on an asyncio event loop: the loop watches its sockets and keeps its timer.

pycurl has a class for that too, `AsyncCurlMulti`. It does not tell which sockets there are, and `unclean`
must look at them. The loop must have `add_reader`. Every loop has it but the proactor loop of Windows.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Protocol

from .options import curl

_READ: int = curl.POLL_IN
_WRITE: int = curl.POLL_OUT
_REMOVE: int = curl.POLL_REMOVE
_CAN_READ: int = curl.CSELECT_IN
_CAN_WRITE: int = curl.CSELECT_OUT
_TIMEOUT: int = curl.SOCKET_TIMEOUT
_MOST_KEPT = 512  # unused connections
_MOST_KNOWN = 4096

Ends = tuple[str, int, str, int]
"""Address and port of the other side, then of ours: they name a connection as long as it is open."""


class Runs(Protocol):
    """One transfer."""

    handle: Any

    def done(self, code: int, text: str) -> None:
        """It is over. Code 0: without an error."""
        ...


class Multi:
    """All transfers of one client, and the connections that it keeps."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._multi = curl.CurlMulti()
        self._multi.setopt(curl.M_MAXCONNECTS, _MOST_KEPT)
        self._multi.setopt(curl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(curl.M_TIMERFUNCTION, self._set_timer)
        self._running: dict[Any, Runs] = {}
        self._watched: dict[int, int] = {}
        """What each socket is watched for."""
        self._sockets: set[int] = set()
        """Every socket that was ever watched. Some of the numbers may mean something else by now."""
        self._timer: asyncio.Handle | None = None
        self._connections: dict[Ends, int | None] = {}
        """Those that a request was sent on, in order, with the socket where it is known."""
        self._resting: set[Ends] = set()
        """Those among them on which nothing may come before the next request. HTTP/2 knows no such rest."""

    def add(self, transfer: Runs) -> None:
        self._running[transfer.handle] = transfer
        self._multi.add_handle(transfer.handle)

    def remove(self, transfer: Runs) -> None:
        """Stop a transfer: closes its connection (HTTP/1.1) or resets its stream (HTTP/2)."""
        if self._running.pop(transfer.handle, None) is not None:
            self._multi.remove_handle(transfer.handle)

    def close(self) -> None:
        """Close all connections. No transfer runs any more."""
        if self._timer is not None:
            self._timer.cancel()
        for number in tuple(self._watched):
            self._watch(_REMOVE, number, None, None)
        self._multi.close()

    # ── connections ──

    def is_known(self, ends: Ends) -> bool:
        """Was a request sent on this connection before?"""
        return ends in self._connections

    def know(self, ends: Ends) -> None:
        known = self._connections
        if len(known) >= _MOST_KNOWN:
            oldest = next(iter(known))
            known.pop(oldest)
            self._resting.discard(oldest)
        known[ends] = None

    def rest(self, ends: Ends) -> None:
        """An answer over HTTP/1.1 is over."""
        self._resting.add(ends)

    def unclean(self, ends: Ends) -> bool:
        """Have bytes come on a connection that nobody has asked on, or its end?

        The bytes would be taken for the answer to the next request. libcurl looks too, but not where it has
        looked within the last second.
        """
        if ends not in self._resting:
            return False
        self._resting.discard(ends)
        number = self._connections.get(ends)
        if number is None or not _joins(number, ends):
            number = next((one for one in self._sockets if _joins(one, ends)), None)
            self._connections[ends] = number
        return number is not None and _has_input(number)

    # ── what libcurl calls ──

    def _watch(self, what: int, number: int, _multi: Any, _data: Any) -> None:
        before = self._watched.get(number, 0)
        if what == _REMOVE:
            what = 0
            self._watched.pop(number, None)
        else:
            self._watched[number] = what
            self._sockets.add(number)
        changed = what ^ before
        loop = self._loop
        if changed & _READ:
            if what & _READ:
                loop.add_reader(number, self._act, number, _CAN_READ)
            else:
                loop.remove_reader(number)
        if changed & _WRITE:
            if what & _WRITE:
                loop.add_writer(number, self._act, number, _CAN_WRITE)
            else:
                loop.remove_writer(number)

    def _set_timer(self, milliseconds: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # libcurl must not be called from here, not even when the time has come already.
        if milliseconds == 0:
            self._timer = self._loop.call_soon(self._tick)
        elif milliseconds > 0:
            self._timer = self._loop.call_later(milliseconds / 1000, self._tick)

    # ── what the loop calls ──

    def _tick(self) -> None:
        self._timer = None
        self._act(_TIMEOUT, 0)

    def _act(self, number: int, what: int) -> None:
        running = -1
        try:
            _, running = self._multi.socket_action(number, what)
        finally:
            if running < len(self._running):
                self._collect()

    def _collect(self) -> None:
        _, good, bad = self._multi.info_read()
        for handle in good:
            self._done(handle, 0, "")
        for handle, code, text in bad:
            self._done(handle, code, text)

    def _done(self, handle: Any, code: int, text: str) -> None:
        transfer = self._running.pop(handle, None)
        if transfer is not None:
            self._multi.remove_handle(handle)
            transfer.done(code, text)


def _joins(number: int, ends: Ends) -> bool:
    """Is `number` the socket between these two ends?"""
    try:
        found = _borrowed(number)
    except OSError:  # it is no socket any more
        return False
    try:
        there, here = found.getpeername(), found.getsockname()
        return (*there[:2], *here[:2]) == ends
    except OSError:
        return False
    finally:
        found.detach()


def _has_input(number: int) -> bool:
    found = _borrowed(number)
    try:
        found.recv(1, socket.MSG_PEEK)
    except (BlockingIOError, InterruptedError):
        return False
    except OSError:
        return True
    else:
        return True
    finally:
        found.detach()


def _borrowed(number: int) -> socket.socket:
    """A socket of libcurl's as an object of Python's, which would close it in the end: `detach` it."""
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=number)
