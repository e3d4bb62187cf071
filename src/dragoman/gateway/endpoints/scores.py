"""`GET /scores`: how reliable each model of each upstream was, as JSON.

The counts are about the requests of all keys together, so only admins get them.
"""

from __future__ import annotations

import msgspec

from ...observe import scores
from ...transport.server import HttpRequest, HttpResponse, Route
from ..caller import identity_of
from ..errors import client_of, error_response, forbidden
from ..ids import new_id
from ..state import State
from .exchanges import json_answer, with_errors

_ADMINS_ONLY = "scores are about all keys: use a key with the role admin"


def routes(state: State) -> list[Route]:
    return [Route("GET", "/scores", with_errors(state, _get_scores))]


async def _get_scores(state: State, request: HttpRequest) -> HttpResponse:
    if not identity_of(state.keys, request).sees_all:
        return error_response(client_of(request), forbidden(_ADMINS_ONLY), new_id())
    wanted = scores.parse(request.query, state.clock())
    found = await scores.report(state.store, wanted)
    return json_answer(state.observed.redactor.scrub(msgspec.json.encode(found)))
