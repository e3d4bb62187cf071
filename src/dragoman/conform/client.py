"""Send one request to the tested endpoint, like a client of its protocol. Time and size are bounded."""

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
from .laws.http import HttpAnswer

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_LARGEST = 64 * 1024 * 1024
_CONNECT = 10.0
ISSUER = "conform"
"""The issuer of all seals in a trial: the only endpoint."""


class CouldNotRun(DragomanError):
    """The suite cannot judge anything: the endpoint does not answer, or refuses us."""


class EndpointClient:
    """Sends requests to one endpoint in one protocol."""

    def __init__(
        self, client: Client, place: Endpoint, protocol: str, headers: Mapping[str, str], time_limit: float
    ) -> None:
        self.protocol = protocol
        self.place = place
        self._client = client
        self._timeout = time_limit
        self._headers = {"content-type": "application/json", **headers}

    async def ask(self, request: Request) -> HttpAnswer:
        """Post `request` to the path of its protocol."""
        path, body = self.encode_request(request)
        return await self.post(path, msgspec.json.encode(body))

    def encode_request(self, request: Request) -> tuple[str, dict[str, Any]]:
        """The path and the body of the request in the endpoint's protocol."""
        target = Target(model=request.model, issuer=ISSUER, chat_compatible=True, default_max_tokens=4096)
        client = client_protocol(self.protocol)
        outgoing = asked_in(client).write_request(request, target)
        if not client.asked_in:
            return outgoing.path, outgoing.body
        # A reply protocol (`cursor`) only has answers. Its requests use another protocol, at its own path.
        return client.endpoints.paths(*client.endpoints.answers)[0], {
            **outgoing.body,
            "stream": request.stream,
        }

    async def post(self, path: str, body: bytes) -> HttpAnswer:
        return await self._send("POST", path, body)

    async def get(self, path: str) -> HttpAnswer:
        return await self._send("GET", path, b"")

    async def _send(self, method: str, path: str, body: bytes) -> HttpAnswer:
        url = self.place.url(path)
        started = time.monotonic()
        status, content_type, parts, cut = 0, "", list[bytes](), ""
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._client.request(
                    method, url, self._headers, body, connect_timeout=_CONNECT, idle_timeout=self._timeout
                )
                status, content_type = response.status, _plain(response.headers)
                await _read(response, parts)
        except (CannotConnect, ConnectTimeout) as error:
            raise CouldNotRun(
                f"no endpoint answers at {self.place.root} (it {error}); check the URL and that it is running"
            ) from None
        except TimeoutError:
            cut = f"no end after {time.monotonic() - started:.0f} s"
        except (HttpError, ValueError) as error:
            cut = f"the connection broke: {error}"
        return HttpAnswer(status, content_type, b"".join(parts), cut, time.monotonic() - started)


@asynccontextmanager
async def open_endpoint(
    url: str, protocol: str, key: str | None, time_limit: float, headers: Mapping[str, str] = NO_HEADERS
) -> AsyncGenerator[EndpointClient]:
    """A client for the endpoint at `url`. Each request may take `time_limit` seconds."""
    try:
        place = endpoint(url, asked_in(client_protocol(protocol)).name)
    except BadUrl as error:
        raise CouldNotRun(f"the URL {error}") from None  # the error goes on: "has no host", …
    async with open_client() as client:
        yield EndpointClient(client, place, protocol, {**_credential(protocol, key), **headers}, time_limit)


async def _read(response: Response, parts: list[bytes]) -> None:
    """Read the body into `parts`. Bytes that arrived before an error stay there."""
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
    """The headers of the protocol, with the key in the protocol's auth header."""
    client = client_protocol(protocol)
    # Some servers choose the format of the model list by these headers (anthropic-version).
    needed = asked_in(client).headers(Target(model=""))
    if key is None:
        return needed
    header = client.auth.header
    return {**needed, header: f"Bearer {key}" if client.auth == BEARER else key}


def asked_in(client: ClientProtocol) -> WireProtocol:
    """The protocol of the requests: the client's own, unless it only has answers (`cursor`)."""
    return protocol_named(client.asked_in or client.name)
