"""The HTTP face: which path is whose, and who may knock."""

from __future__ import annotations

import logging
from collections.abc import Awaitable

from ..observe.metrics import CONTENT_TYPE
from ..protocols.base import ClientProtocol
from ..protocols.facts import Compaction
from ..protocols.registry import served_protocols
from ..transport.server import (
    Answer,
    ClientGone,
    Handler,
    MethodNotAllowed,
    NotFound,
    Refusal,
    Request,
    Response,
    Route,
    Routes,
    json_response,
)
from . import exchanges_api, models, sockets
from .compact import compact
from .count_tokens import count_tokens
from .errors import busy, client_of, error_response, from_http, our_fault
from .exchange_handler import Serving
from .guard import refusal
from .ids import new_id
from .inspector import routes as inspector_routes
from .state import State

log = logging.getLogger("dragoman.gateway")

EXCHANGE = "x-dragoman-exchange"


class App:
    """Every request of one gateway."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._routes = Routes(routes(state, self.answer))

    async def answer(self, request: Request) -> Answer:
        """Every answer has an id, every error the shape of its caller; a fault of ours is told and logged."""
        try:
            # Before anything else is looked at: may this caller ask at all?
            if (refused := refusal(self._state, request)) is not None:
                said = {"client": request.client, "path": request.path, "why": refused.message}
                log.warning("a request was refused", extra=said)
                answer = error_response(client_of(request), refused, new_id())
            else:
                answer = await self._routes.find(request)(request)
        except Refusal as error:
            answer = _refused(request, error)
        except ClientGone:
            raise  # nobody's fault
        except Exception as error:
            id = new_id()
            log.exception("an exchange failed through a fault of Dragoman's", extra={"exchange": id})
            answer = error_response(client_of(request), our_fault(error), id)
        answer.headers.setdefault(EXCHANGE, new_id())
        return answer


def _refused(request: Request, error: Refusal) -> Response:
    answer = error_response(client_of(request), from_http(request, error), new_id())
    if isinstance(error, MethodNotAllowed):
        answer.headers["allow"] = ",".join(error.allowed)
    return answer


def routes(state: State, answer: Handler) -> list[Route]:
    """All paths there are; `answer` is asked for each request that comes over a WebSocket."""

    async def hello(request: Request) -> Response:
        return Response(b"Dragoman is here.\n", content_type="text/plain; charset=utf-8")

    async def healthz(request: Request) -> Response:
        return json_response({"status": "ok", "streams": state.metrics.open_streams()})

    async def metrics(request: Request) -> Response:
        return Response(state.metrics.page(), content_type=CONTENT_TYPE)

    return [
        Route("GET", "/", hello),
        Route("GET", "/api/hello", hello),
        Route("GET", "/healthz", healthz),
        Route("GET", "/metrics", metrics),
        *_answers(state),
        *_websockets(state, answer),
        *models.routes(state),
        *inspector_routes(),
        *exchanges_api.routes(state),
    ]


def _answers(state: State) -> list[Route]:
    """Where models are asked: at the endpoints of every protocol."""
    routes: list[Route] = []
    for client in served_protocols():
        at = client.endpoints
        routes += [Route("POST", path, _answering(state, client)) for path in at.paths(*at.answers)]
        routes += [Route("POST", path, _counting(state, client)) for path in at.paths(*at.counts)]
        routes += [Route("POST", path, _nothing) for path in at.paths(*at.missing)]
        if client.compaction is not None:
            paths = [path + client.compaction.suffix for path in at.paths(*at.answers)]
            routes += [Route("POST", path, _compacting(state, client, client.compaction)) for path in paths]
    return routes


def _websockets(state: State, answer: Handler) -> list[Route]:
    clients = [client for client in served_protocols() if client.socket_format is not None]
    return [route for client in clients for route in sockets.routes(state, client, answer)]


def _answering(state: State, client: ClientProtocol) -> Handler:
    async def refuse() -> Answer:
        return error_response(client, busy(), new_id())

    def answer(request: Request) -> Awaitable[Answer]:
        if state.running >= state.config.server.max_streams:
            return refuse()
        return Serving(state, client, request).run()

    return answer


def _counting(state: State, client: ClientProtocol) -> Handler:
    async def count(request: Request) -> Response:
        return await count_tokens(state, client, request)

    return count


def _compacting(state: State, client: ClientProtocol, compaction: Compaction) -> Handler:
    async def answer(request: Request) -> Answer:
        if state.running >= state.config.server.max_streams:
            return error_response(client, busy(), new_id())
        return await compact(state, client, compaction, request)

    return answer


async def _nothing(request: Request) -> Answer:
    raise NotFound
