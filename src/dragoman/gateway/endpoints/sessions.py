"""`GET /sessions`: conversations, and the turns of one with what the cache did."""

from __future__ import annotations

import msgspec

from ...observe import sessions
from ...store import SessionQuery
from ...transport.server import HttpRequest, HttpResponse, Route
from ..caller import identity_of
from ..state import State
from .exchanges import NoSuchExchange, json_answer, with_errors


def routes(state: State) -> list[Route]:
    return [
        Route("GET", "/sessions", with_errors(state, _list_sessions)),
        Route("GET", "/sessions/{id}", with_errors(state, _get_session)),
    ]


async def _list_sessions(state: State, request: HttpRequest) -> HttpResponse:
    found = await sessions.find(state.store, _visible(state, request, sessions.parse_query(request.query)))
    return json_answer(state.observed.redactor.scrub(msgspec.json.encode(found)))


async def _get_session(state: State, request: HttpRequest) -> HttpResponse:
    id = request.parts["id"]
    found = await sessions.one(state.store, _visible(state, request, SessionQuery(session=id)))
    if found is None:
        raise NoSuchExchange(f"session {id[:40]!r} not found: it may have expired (server.retention)")
    return json_answer(state.observed.redactor.scrub(msgspec.json.encode(found)))


def _visible(state: State, request: HttpRequest, query: SessionQuery) -> SessionQuery:
    """The part of `query` that the client may see: a user sees only its own sessions."""
    identity = identity_of(state.keys, request)
    return query if identity.sees_all else msgspec.structs.replace(query, key=identity.name)
