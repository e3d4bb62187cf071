"""One request to the endpoint under trial, as a client of its protocol sends it. Everything is bounded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

import aiohttp
import msgspec
from yarl import URL

from ..config.urls import BadUrl, Endpoint, endpoint
from ..errors import DragomanError
from ..messages import Request
from ..protocols.base import Target
from ..protocols.registry import protocol as protocol_named
from ..upstream import proxy_for
from .laws.http import Got
from .shape import ANTHROPIC, CHAT, CURSOR, GEMINI

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_LARGEST = 64 * 1024 * 1024
_CONNECT = 10.0
# Cursor's JSON is a form of answers only: it is asked for in Chat, at an address of its own.
_ASKED_IN = {CURSOR: CHAT}
_ASKED_AT = {CURSOR: "/cursor/v2/chat/completions"}
ISSUER = "conform"
"""Whose seals come back: there is only one endpoint, and what it sealed goes back to it."""


class CouldNotRun(DragomanError):
    """There is nothing to judge: nobody answers, or not to us."""


class Asker:
    """Asks one endpoint in one protocol."""

    def __init__(
        self, session: aiohttp.ClientSession, place: Endpoint, protocol: str, headers: Mapping[str, str]
    ) -> None:
        self.protocol = protocol
        self.place = place
        self._session = session
        self._proxy = proxy_for(URL(place.root))
        self._headers = {"content-type": "application/json", **headers}

    async def ask(self, request: Request) -> Got:
        """Post `request` to where its protocol wants it."""
        path, body = self.written(request)
        return await self.post(path, msgspec.json.encode(body))

    def written(self, request: Request) -> tuple[str, dict[str, Any]]:
        """The request's path and body."""
        target = Target(model=request.model, issuer=ISSUER, chat_compatible=True, default_max_tokens=4096)
        spoken = _ASKED_IN.get(self.protocol, self.protocol)
        outgoing = protocol_named(spoken).write_request(request, target)
        body = {**outgoing.body, "stream": request.stream} if spoken != self.protocol else outgoing.body
        return _ASKED_AT.get(self.protocol, outgoing.path), body

    async def post(self, path: str, body: bytes) -> Got:
        return await self._send("POST", path, body)

    async def get(self, path: str) -> Got:
        return await self._send("GET", path, None)

    async def _send(self, method: str, path: str, body: bytes | None) -> Got:
        url = self.place.url(path)
        started = time.monotonic()
        status, content_type, parts, cut = 0, "", list[bytes](), ""
        try:
            async with self._session.request(
                method,
                url,
                data=body,
                headers=self._headers,
                proxy=self._proxy,
                allow_redirects=False,  # the key is for this endpoint
            ) as response:
                status, content_type = response.status, _plain(response.headers)
                await _read(response, parts)
        except aiohttp.ClientConnectorError as error:
            raise CouldNotRun(
                f"nobody answers at {self.place.root}: {_reason(error)}; is it running?"
            ) from None
        except aiohttp.ConnectionTimeoutError:
            raise CouldNotRun(
                f"nobody answers at {self.place.root}: no connection in time; is it running?"
            ) from None
        except TimeoutError:
            cut = f"no end after {time.monotonic() - started:.0f} s"
        except (aiohttp.ClientError, ValueError, OSError) as error:
            cut = f"broken off: {_reason(error)}"
        return Got(status, content_type, b"".join(parts), cut, time.monotonic() - started)


@asynccontextmanager
async def asker(
    url: str, protocol: str, key: str | None, patience: float, headers: Mapping[str, str] = NO_HEADERS
) -> AsyncGenerator[Asker]:
    """An asker for the endpoint at `url`, each of whose requests takes at most `patience` seconds."""
    try:
        place = endpoint(url, _ASKED_IN.get(protocol, protocol))
    except BadUrl as error:
        raise CouldNotRun(f"the URL {error}") from None
    limits = aiohttp.ClientTimeout(total=patience, sock_connect=min(_CONNECT, patience))
    async with aiohttp.ClientSession(
        timeout=limits, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=True
    ) as session:
        yield Asker(session, place, protocol, {**_credential(protocol, key), **headers})


async def _read(response: aiohttp.ClientResponse, parts: list[bytes]) -> None:
    """What was sent before a break stays in `parts`."""
    size = 0
    async for data in response.content.iter_any():
        parts.append(data)
        size += len(data)
        if size > _LARGEST:
            raise ValueError(f"more than {_LARGEST} bytes")
        await asyncio.sleep(0)


def _plain(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _reason(error: Exception) -> str:
    """In one line; of what is no HTTP at all the parser has a drawing to show."""
    return " ".join(str(error).replace("\\n", " ").split()) or type(error).__name__


def _credential(protocol: str, key: str | None) -> dict[str, str]:
    """Where a client of the protocol puts its key."""
    version = {"anthropic-version": "2023-06-01"} if protocol == ANTHROPIC else {}
    if key is None:
        # The shape of a list of models hangs on this header, whatever it says.
        return version
    named = {ANTHROPIC: "x-api-key", GEMINI: "x-goog-api-key"}.get(protocol)
    return {**version, **({named: key} if named else {"authorization": f"Bearer {key}"})}
