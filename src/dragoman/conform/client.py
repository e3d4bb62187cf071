"""One request to the endpoint under trial, as a client of its protocol sends it. Everything is bounded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

import msgspec

from ..config.urls import BadUrl, Endpoint, endpoint
from ..model.errors import DragomanError
from ..model.messages import Request
from ..protocols.base import ClientProtocol, Target, WireProtocol
from ..protocols.facts import BEARER
from ..protocols.registry import client_protocol
from ..protocols.registry import protocol as protocol_named
from ..transport.client import CannotConnect, Client, ConnectTimeout, HttpError, Response, open_client
from .laws.http import Got

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_LARGEST = 64 * 1024 * 1024
_CONNECT = 10.0
ISSUER = "conform"
"""Whose seals come back: there is only one endpoint, and what it sealed goes back to it."""


class CouldNotRun(DragomanError):
    """There is nothing to judge: nobody answers, or not to us."""


class Asker:
    """Asks one endpoint in one protocol."""

    def __init__(
        self, client: Client, place: Endpoint, protocol: str, headers: Mapping[str, str], patience: float
    ) -> None:
        self.protocol = protocol
        self.place = place
        self._client = client
        self._patience = patience
        self._headers = {"content-type": "application/json", **headers}

    async def ask(self, request: Request) -> Got:
        """Post `request` to where its protocol wants it."""
        path, body = self.written(request)
        return await self.post(path, msgspec.json.encode(body))

    def written(self, request: Request) -> tuple[str, dict[str, Any]]:
        """The request's path and body."""
        target = Target(model=request.model, issuer=ISSUER, chat_compatible=True, default_max_tokens=4096)
        client = client_protocol(self.protocol)
        outgoing = asked_in(client).write_request(request, target)
        if not client.asked_in:
            return outgoing.path, outgoing.body
        # A reply protocol is a form of answers only: another asks for it, at an address of its own.
        return client.endpoints.paths(*client.endpoints.answers)[0], {
            **outgoing.body,
            "stream": request.stream,
        }

    async def post(self, path: str, body: bytes) -> Got:
        return await self._send("POST", path, body)

    async def get(self, path: str) -> Got:
        return await self._send("GET", path, b"")

    async def _send(self, method: str, path: str, body: bytes) -> Got:
        url = self.place.url(path)
        started = time.monotonic()
        status, content_type, parts, cut = 0, "", list[bytes](), ""
        try:
            async with asyncio.timeout(self._patience):
                response = await self._client.ask(
                    method, url, self._headers, body, connect_timeout=_CONNECT, idle_timeout=self._patience
                )
                status, content_type = response.status, _plain(response.headers)
                await _read(response, parts)
        except (CannotConnect, ConnectTimeout) as error:
            raise CouldNotRun(f"nobody answers at {self.place.root}: {error}; is it running?") from None
        except TimeoutError:
            cut = f"no end after {time.monotonic() - started:.0f} s"
        except (HttpError, ValueError) as error:
            cut = f"broken off: {error}"
        return Got(status, content_type, b"".join(parts), cut, time.monotonic() - started)


@asynccontextmanager
async def asker(
    url: str, protocol: str, key: str | None, patience: float, headers: Mapping[str, str] = NO_HEADERS
) -> AsyncGenerator[Asker]:
    """An asker for the endpoint at `url`, each of whose requests takes at most `patience` seconds."""
    try:
        place = endpoint(url, asked_in(client_protocol(protocol)).name)
    except BadUrl as error:
        raise CouldNotRun(f"the URL {error}") from None
    async with open_client() as client:
        yield Asker(client, place, protocol, {**_credential(protocol, key), **headers}, patience)


async def _read(response: Response, parts: list[bytes]) -> None:
    """What was sent before a break stays in `parts`."""
    size = 0
    try:
        while data := await response.chunk():
            parts.append(data)
            size += len(data)
            if size > _LARGEST:
                raise ValueError(f"more than {_LARGEST} bytes")
            await asyncio.sleep(0)
    finally:
        await response.close()


def _plain(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _credential(protocol: str, key: str | None) -> dict[str, str]:
    """Where a client of the protocol puts its key."""
    client = client_protocol(protocol)
    # The shape of a list of models may hang on these headers.
    needed = asked_in(client).headers(Target(model=""))
    if key is None:
        return needed
    header = client.auth.header
    return {**needed, header: f"Bearer {key}" if client.auth == BEARER else key}


def asked_in(client: ClientProtocol) -> WireProtocol:
    """The protocol in which the clients of `client` ask: its own, unless it has none for requests."""
    return protocol_named(client.asked_in or client.name)
