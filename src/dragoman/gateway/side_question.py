"""A question of Dragoman's own to a configured target, beside the exchange that needs the answer."""

from __future__ import annotations

import asyncio

import msgspec

from ..config.types import TargetConfig
from ..model.errors import UpstreamError
from ..model.events import Event
from ..model.messages import Request
from ..protocols.common.collect import collect
from ..protocols.common.failures import UpstreamFailed
from ..protocols.registry import protocol
from ..routing.router import merge_params
from ..translation.exchange import Exchange, Options
from .state import State
from .upstream import UpstreamCall

_MOST_RECEIVED = 4 * 1024 * 1024


async def ask(state: State, target: TargetConfig, request: Request, *, seconds: float) -> str:
    """The words of the answer. Raises `UpstreamError` if there is none in that time."""
    try:
        async with asyncio.timeout(seconds):
            return await _ask(state, target, request)
    except TimeoutError:
        raise UpstreamError(f"{target.upstream} did not answer within {seconds:g} seconds") from None
    except UpstreamFailed as error:
        raise UpstreamError(error.failure.message) from None


async def _ask(state: State, target: TargetConfig, request: Request) -> str:
    upstream = state.config.upstreams[target.upstream]
    wire = protocol(upstream.protocol)
    outgoing = wire.write_request(request, upstream.target(target.model))
    members = merge_params(outgoing.members, target.params) if target.params else outgoing.members
    url = upstream.endpoint.url(outgoing.path)
    headers = await state.keyring.headers(upstream, url)
    exchange = Exchange(
        wire.name, wire, tools=outgoing.names, options=Options(stream=False, issuer=upstream.name)
    )
    said: list[Event] = []
    exchange.tap = said.extend
    body = msgspec.json.encode(members)
    waits = (upstream.connect_timeout, upstream.idle_timeout)
    async with UpstreamCall(state.pool, upstream.name, url, body, headers, *waits, upstream.network) as call:
        response = call.response = await call.send()
        if not 200 <= response.status < 300:
            raise UpstreamFailed(await call.read_error())
        received = 0
        while not exchange.over and (chunk := await response.chunk()):
            received += len(chunk)
            if received > _MOST_RECEIVED:
                break
            exchange.feed(chunk)
        exchange.close()
        exchange.tap = None
        if exchange.failure is not None:
            raise UpstreamFailed(call.redact(exchange.failure))
    return collect(said).text()
