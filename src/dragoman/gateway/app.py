"""The routes of the gateway, and the entry point of every request."""

from __future__ import annotations

import logging
from functools import partial

from ..observe.metrics import CONTENT_TYPE
from ..protocols.registry import served_protocols
from ..transport.server import (
    ClientGone,
    Handler,
    HttpAnswer,
    HttpRequest,
    HttpResponse,
    MethodNotAllowed,
    NotFound,
    RefusedRequest,
    Route,
    Routes,
)
from .caller import identity_of
from .endpoints import exchanges, models, probes, scores, sessions, usage
from .endpoints.compact import compact
from .endpoints.count_tokens import count_tokens
from .endpoints.inspector import routes as inspector_routes
from .errors import client_of, error_response, forbidden, from_refusal, internal_error
from .exchange import sockets
from .exchange.answering import answer_request
from .guard import refusal
from .ids import new_id
from .passthrough import endpoints as other_endpoints
from .state import State

log = logging.getLogger("dragoman.gateway")

EXCHANGE = "x-dragoman-exchange"
_ADMINS_ONLY = "metrics are about all keys: use a key with the role admin"


class App:
    """Answers every request, from HTTP and from WebSockets."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._routes = Routes(routes(state, self.answer))

    async def answer(self, request: HttpRequest) -> HttpAnswer:
        """Check access, find the route, and answer. Every error is in the protocol of the client."""
        try:
            if (refused := await refusal(self._state, request)) is not None:
                fields = {"client": request.client, "path": request.path, "why": refused.message}
                log.warning("a request was refused", extra=fields)
                answer = error_response(client_of(request), refused, new_id())
            else:
                answer = await self._routes.find(request)(request)
        except RefusedRequest as error:
            answer = _refused(request, error)
        except ClientGone:
            raise
        except Exception:  # the last seam: any bug becomes a 500 in the client's protocol
            id = new_id()
            log.exception("an exchange failed because of a bug in Dragoman", extra={"exchange": id})
            answer = error_response(client_of(request), internal_error(), id)
        answer.headers.setdefault(EXCHANGE, new_id())
        return answer


def _refused(request: HttpRequest, error: RefusedRequest) -> HttpResponse:
    answer = error_response(client_of(request), from_refusal(request, error), new_id())
    if isinstance(error, MethodNotAllowed):
        answer.headers["allow"] = ",".join(error.allowed)
    return answer


def routes(state: State, answer: Handler) -> list[Route]:
    """All routes. `answer` handles each request that comes over a WebSocket."""

    async def hello(request: HttpRequest) -> HttpResponse:
        return HttpResponse(b"Dragoman is here.\n", content_type="text/plain; charset=utf-8")

    async def metrics(request: HttpRequest) -> HttpResponse:
        if not identity_of(state.keys, request).sees_all:
            return error_response(client_of(request), forbidden(_ADMINS_ONLY), new_id())
        return HttpResponse(state.observed.metrics.page(), content_type=CONTENT_TYPE)

    return [
        Route("GET", "/", hello),
        Route("GET", "/api/hello", hello),
        Route("GET", "/metrics", metrics),
        *probes.routes(state),
        *_model_routes(state),
        *other_endpoints.routes(state),
        *_missing_routes(),
        *_websocket_routes(state, answer),
        *models.routes(state),
        *inspector_routes(),
        *exchanges.routes(state),
        *sessions.routes(state),
        *usage.routes(state),
        *scores.routes(state),
    ]


def _model_routes(state: State) -> list[Route]:
    """The endpoints of every protocol at which clients ask a model."""
    routes: list[Route] = []
    for client in served_protocols():
        at = client.endpoints
        routes += [
            Route("POST", path, partial(answer_request, state, client)) for path in at.paths(*at.answers)
        ]
        routes += [Route("POST", path, partial(count_tokens, state, client)) for path in at.paths(*at.counts)]
        if client.compaction is not None:
            paths = [path + client.compaction.suffix for path in at.paths(*at.answers)]
            routes += [
                Route("POST", path, partial(compact, state, client, client.compaction)) for path in paths
            ]
    return routes


def _missing_routes() -> list[Route]:
    """Paths of a protocol that would otherwise belong to another route, such as that of a model's name."""
    at = [client.endpoints for client in served_protocols()]
    return [Route("POST", path, _not_found) for one in at for path in one.paths(*one.missing)]


def _websocket_routes(state: State, answer: Handler) -> list[Route]:
    clients = [client for client in served_protocols() if client.socket_format is not None]
    return [route for client in clients for route in sockets.routes(state, client, answer)]


async def _not_found(request: HttpRequest) -> HttpAnswer:
    raise NotFound
