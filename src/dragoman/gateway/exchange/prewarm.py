"""Requests of a WebSocket client that no model answers (`generate: false`).

Codex sends one as soon as it has a connection, with its prompt and its tools. Its next request names the
empty response in `previous_response_id` and sends only the user's input.
"""

from __future__ import annotations

from typing import Any

from ...model.events import End, Start, Stop, Usage, UsageSeen
from ...protocols.base import AnswerContext
from ...store import responses as responses_state
from ...transport.server import Stream
from ..state import State
from .incoming_request import IncomingRequest
from .reply import StreamReply

_NO_USAGE = Usage(input=0, output=0)


async def prewarm(state: State, incoming: IncomingRequest, reply: StreamReply) -> Stream:
    """Send an empty answer, and store it like any other. A model without a route is an error here too."""
    request = incoming.request
    choice = state.upstreams.choices(request.model, incoming.conversation, incoming.traits)[0]
    issuer, scope, memory = choice.upstream.name, incoming.scope, incoming.memory
    continued = await responses_state.expand(
        state.store, request, incoming.previous, issuer=issuer, scope=scope, memory=memory
    )
    written: list[dict[str, Any]] = []
    context = AnswerContext(
        id=incoming.id, created=int(state.clock()), model=request.model, on_response=written.append
    )
    encoder = incoming.client.stream_encoder(context)
    answer = encoder.encode([Start(), UsageSeen(_NO_USAGE), End(Stop.END)])
    notices = await responses_state.record(
        state.store, continued, written[0], issuer=issuer, scope=scope, memory=memory
    )
    incoming.track.add_notices(*notices)
    incoming.track.succeeded()
    reply.begin()
    return await reply.end(answer)
