"""State of a conversation that the client's protocol cannot carry: opaque reasoning, and stored responses.

An attempt restores the state before it writes the upstream's request. It saves the new state before the
client gets the last bytes of the answer, so the client's next request always finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...model.messages import Notice, Part, Request
from ...routing.router import ChosenTarget
from ...store import reasoning
from ...store import responses as responses_state
from ...store.reasoning_keys import ReasoningContext
from ...store.responses import Continued
from ...translation.translation import Translation
from ..state import State
from .incoming_request import IncomingRequest


class RestoredState(msgspec.Struct, frozen=True):
    """A request for one target, and what is needed to save the state after the answer."""

    request: Request
    context: ReasoningContext
    continued: Continued | None
    """Only for a protocol with `previous_response_id`."""
    kept_upstream: bool = False
    """Does the upstream itself keep the conversation that the request continues?"""
    notices: tuple[Notice, ...] = ()


async def restore(state: State, incoming: IncomingRequest, choice: ChosenTarget) -> RestoredState:
    """Put stored responses, and the reasoning of this upstream, back into the client's request."""
    client, upstream = incoming.client, choice.upstream
    request, continued, kept_upstream = incoming.request, None, False
    if client.keeps_responses:
        kept_upstream = upstream.protocol == client.name and responses_state.is_kept_by_upstream(
            request, incoming.previous, upstream.name
        )
        continued = await responses_state.expand(
            state.store,
            request,
            incoming.previous,
            issuer=upstream.name,
            native=kept_upstream,
            scope=incoming.scope,
            memory=incoming.memory,
        )
        request = continued.request
    context = ReasoningContext(
        client=client.name,
        issuer=upstream.name,
        scope=incoming.scope,
        wants_unsealed=upstream.facts.reasoning_field is not None,
        same_protocol=upstream.protocol == client.name,
        client_asked=reasoning.asks_for_reasoning(incoming.request),
        # With one upstream of the client's protocol, every seal can only be from that upstream.
        track_issuers=state.upstreams.protocols[client.name] > 1,
    )
    if reasoning.needs_no_restore(request):
        return RestoredState(request, context, continued, kept_upstream)
    restored = await reasoning.restore(state.store, request, context)
    return RestoredState(restored.request, context, continued, kept_upstream, restored.notices)


def needs_saving(restored: RestoredState, translation: Translation) -> bool:
    """May the answer hold anything to save? An answer of plain text does not."""
    return restored.continued is not None or bool(translation.receipts) or not translation.text_only


async def save(
    state: State,
    incoming: IncomingRequest,
    restored: RestoredState,
    translation: Translation,
    parts: Sequence[Part],
    response: dict[str, Any] | None,
) -> tuple[Notice, ...]:
    """Save what the client's next request needs. `parts` and `response` are the answer as it gets it."""
    context, continued = restored.context, restored.continued
    request = incoming.request if continued is None else continued.request
    notices = await reasoning.stash(state.store, request, parts, context, translation.receipts)
    if continued is not None:
        notices += await responses_state.record(
            state.store,
            continued,
            response,
            issuer=context.issuer,
            native=restored.kept_upstream,
            scope=incoming.scope,
            memory=incoming.memory,
        )
    return notices
