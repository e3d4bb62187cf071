"""Requests that no model answers: the client sends what its next request will go on from.

Codex sends one as soon as it has a connection, with its prompt and its tools, and names it in
`previous_response_id` when the user has asked something.
"""

from __future__ import annotations

from ..model.events import End, Start, Stop, Usage, UsageSeen
from ..protocols.base import AnswerContext
from ..store import responses as responses_state
from ..transport.server import Stream
from .attempt import Asked
from .reply import StreamReply
from .state import State

_NOTHING_SPENT = Usage(input=0, output=0)


async def warm_up(state: State, asked: Asked, reply: StreamReply) -> Stream:
    """An empty answer, kept like any other. A model that no route takes is refused as for any request."""
    request = asked.request
    choice = state.choices(request.model, asked.conversation)[0]
    issuer, scope, memory = choice.upstream.name, asked.scope, asked.memory
    continued = await responses_state.expand(
        state.store, request, asked.kept, issuer=issuer, scope=scope, memory=memory
    )
    context = AnswerContext(id=asked.id, created=int(state.clock()), model=request.model)
    encoder = asked.client.stream_encoder(context)
    said = encoder.encode([Start(), UsageSeen(_NOTHING_SPENT), End(Stop.END)])
    asked.track.notices = await responses_state.record(
        state.store, continued, said, issuer=issuer, scope=scope, memory=memory
    )
    reply.begin(asked.track.notices)
    return await reply.end(said)
