"""Requests that Dragoman itself sends to a configured target, such as the description of an image."""

from __future__ import annotations

import asyncio

from ...config.types import TargetConfig
from ...model.errors import UpstreamError
from ...model.events import Event
from ...model.messages import Request
from ...protocols.common.collect import Answer, collect
from ...protocols.common.failures import UpstreamFailed
from ...protocols.registry import DEFAULT_PROTOCOL, upstream_protocol
from ...translation.translation import Options, Translation
from ..state import State
from ..upstreams.addressing import build_request
from ..upstreams.call import UpstreamCall
from ..upstreams.keyring import NO_BETAS
from ..upstreams.keys import first_key

# The answer is a short text. A model that does not stop must not fill the memory.
_MAX_RECEIVED = 4 * 1024 * 1024


async def ask(state: State, target: TargetConfig, request: Request, *, seconds: float) -> Answer:
    """Send `request` and return the answer. Raises `UpstreamError`, also after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return await _ask(state, target, request)
    except TimeoutError:
        raise UpstreamError(f"{target.upstream} did not answer within {seconds:g} seconds") from None
    except UpstreamFailed as error:
        raise UpstreamError(error.failure.message) from None


async def _ask(state: State, target: TargetConfig, request: Request) -> Answer:
    upstream = state.config.upstreams[target.upstream]
    upstream = await first_key(state.upstreams, upstream, f"{target.upstream}/{target.model}")
    wire = upstream_protocol(upstream.protocol)
    outgoing = wire.write_request(request, upstream.target(target.model))
    url, body = build_request(upstream, target.model, outgoing, target.params, NO_BETAS)
    headers = await state.upstreams.keyring.headers(upstream, url, body=body)
    translation = Translation(
        # Only the events count, so the client's protocol does not matter.
        wire.name,
        DEFAULT_PROTOCOL,
        tools=outgoing.names,
        options=Options(stream=False, issuer=upstream.name),
    )
    events: list[Event] = []
    translation.tap = events.extend
    async with UpstreamCall(state.upstreams.pool, upstream, url, body, headers) as call:
        response = await call.send()
        received = 0
        while not translation.over and (chunk := await response.chunk()):
            received += len(chunk)
            if received > _MAX_RECEIVED:
                break
            translation.feed(chunk)
        translation.close()
        translation.tap = None
        if translation.failure is not None:
            raise UpstreamFailed(call.redact(translation.failure))
    return collect(events)
