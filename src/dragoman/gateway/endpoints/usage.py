"""`GET /usage`: sums of requests, tokens and cost, as JSON."""

from __future__ import annotations

import msgspec

from ...access.identity import Identity
from ...observe import usage
from ...store import UsageQuery
from ...transport.server import HttpRequest, HttpResponse, Route
from ..caller import identity_of
from ..state import State
from .exchanges import json_answer, with_errors


def routes(state: State) -> list[Route]:
    return [Route("GET", "/usage", with_errors(state, _get_usage))]


async def _get_usage(state: State, request: HttpRequest) -> HttpResponse:
    wanted = usage.parse(request.query, state.clock())
    query = visible(identity_of(state.keys, request), wanted.query)
    wanted = msgspec.structs.replace(wanted, query=query)
    found = await usage.report(state.store, wanted)
    return json_answer(state.observed.redactor.scrub(msgspec.json.encode(found)))


def visible(identity: Identity, query: UsageQuery) -> UsageQuery:
    """The part of `query` that the client may see: a user sees only its own usage."""
    return query if identity.sees_all else msgspec.structs.replace(query, key=identity.name)
