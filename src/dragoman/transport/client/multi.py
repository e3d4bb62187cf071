"""Run libcurl's multi handle on an asyncio event loop: the loop watches its sockets and its timer.

pycurl's own `AsyncCurlMulti` does this, too, but does not expose the sockets, which `unclean` must inspect.
The loop needs `add_reader`. Only the proactor loop of Windows lacks it.
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
_MAX_KEPT = 512  # unused connections
# Connections in which a request was sent. An older one is forgotten, and then counts as new.
_MAX_KNOWN = 4096

Ends = tuple[str, int, str, int]
"""Remote address and port, then local address and port: they identify an open connection."""


class Runs(Protocol):
    """One transfer."""

    handle: Any

    def done(self, code: int, text: str) -> None:
        """The transfer has ended. Code 0: without an error."""
        ...


class Multi:
    """All transfers of one client, and the connections that it keeps."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._multi = curl.CurlMulti()
        self._multi.setopt(curl.M_MAXCONNECTS, _MAX_KEPT)
        self._multi.setopt(curl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(curl.M_TIMERFUNCTION, self._set_timer)
        self._running: dict[Any, Runs] = {}
        self._watched: dict[int, int] = {}
        """The events that the loop watches each socket for."""
        self._sockets: set[int] = set()
        """All sockets that were ever watched. The system may have reused some of the numbers since."""
        self._timer: asyncio.Handle | None = None
        self._connections: dict[Ends, int | None] = {}
        """Connections that carried a request, in order, each with its socket if known."""
        self._resting: set[Ends] = set()
        """Idle HTTP/1.1 connections: a server may send nothing on them before the next request. An HTTP/2
        server may send frames at any time."""

    def add(self, transfer: Runs) -> None:
        self._running[transfer.handle] = transfer
        self._multi.add_handle(transfer.handle)

    def remove(self, transfer: Runs) -> None:
        """Stop a transfer. libcurl closes its connection (HTTP/1.1) or resets its stream (HTTP/2)."""
        if self._running.pop(transfer.handle, None) is not None:
            self._multi.remove_handle(transfer.handle)

    def close(self) -> None:
        """Close all connections. No transfer may be running."""
        if self._timer is not None:
            self._timer.cancel()
        for number in tuple(self._watched):
            self._watch(_REMOVE, number, None, None)
        self._multi.close()

    def is_known(self, ends: Ends) -> bool:
        """Was a request sent on this connection before?"""
        return ends in self._connections

    def know(self, ends: Ends) -> None:
        known = self._connections
        if len(known) >= _MAX_KNOWN:
            oldest = next(iter(known))
            known.pop(oldest)
            self._resting.discard(oldest)
        known[ends] = None

    def rest(self, ends: Ends) -> None:
        """Note that an HTTP/1.1 answer on this connection is complete."""
        self._resting.add(ends)

    def unclean(self, ends: Ends) -> bool:
        """Has an idle connection received bytes, or been closed?

        Such bytes would be taken for the answer to the next request (response smuggling). libcurl checks
        this, too, but not if it has checked within the last second.
        """
        if ends not in self._resting:
            return False
        self._resting.discard(ends)
        number = self._connections.get(ends)
        if number is None or not _joins(number, ends):
            number = next((one for one in self._sockets if _joins(one, ends)), None)
            self._connections[ends] = number
        return number is not None and _has_input(number)

    # Called by libcurl.

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
        # This is a callback of libcurl, which must not be called from here, not even for a timeout of 0.
        if milliseconds == 0:
            self._timer = self._loop.call_soon(self._tick)
        elif milliseconds > 0:
            self._timer = self._loop.call_later(milliseconds / 1000, self._tick)

    # Called by the event loop.

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
    except OSError:  # the number is no longer a socket
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
    """libcurl's socket as a Python object. `detach` it after use: Python would close the socket otherwise."""
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=number)
