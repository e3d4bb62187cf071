"""The HTTP face: which path is whose, and who may knock."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable

from aiohttp import web

from ..metrics import CONTENT_TYPE
from ..protocols.base import ClientProtocol
from ..protocols.cursor import CHAT as CURSOR_CHAT
from ..protocols.registry import ANTHROPIC, CURSOR, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES
from . import exchanges
from .counting import count_tokens
from .errors import busy, client_of, error_response, from_http, our_fault
from .guard import refusal
from .inspector import routes as inspector_routes
from .models import list_models, one_model
from .serving import Serving
from .state import STATE, State

log = logging.getLogger("dragoman.gateway")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

EXCHANGE = "x-dragoman-exchange"
# The model's name may hold slashes (`openrouter/google/gemini-3-pro`); the verb follows the last colon.
_GEMINI = r"/{version:v1|v1beta|v1alpha}/models/{model:.+}:{action:[A-Za-z]+}"


def create_app(state: State) -> web.Application:
    """The application around `state`."""
    app = web.Application(
        client_max_size=state.config.server.max_body, middlewares=[_always_an_answer, _guarded]
    )
    app[STATE] = state
    app.add_routes(_routes())
    app.on_shutdown.append(_end_onlookers)
    app.on_cleanup.append(_close)
    return app


def _routes() -> list[web.RouteDef]:
    routes: list[web.RouteDef] = [
        web.get("/", _hello),
        web.get("/api/hello", _hello),
        web.get("/healthz", _healthz),
        web.get("/metrics", _metrics),
        web.post(_GEMINI, _gemini),
        *inspector_routes(),
        *exchanges.routes(),
    ]
    # Some clients leave out the version, or have it in their base URL already.
    for prefix in ("/v1", ""):
        routes += [
            web.post(prefix + "/messages", _answering(ANTHROPIC)),
            web.post(prefix + "/messages/count_tokens", _counting(ANTHROPIC)),
            web.post(prefix + "/chat/completions", _answering(OPENAI_CHAT)),
            web.post(prefix + "/responses", _answering(OPENAI_RESPONSES)),
            web.get(prefix + "/responses", _no_websocket),
        ]
    # Cursor puts `/chat/completions` behind whatever base URL it was given, `/v1` or none.
    for prefix in ("/cursor", "/cursor/v1"):
        routes.append(web.post(prefix + "/chat/completions", _answering(CURSOR_CHAT)))
    routes.append(web.post("/cursor/v2/chat/completions", _answering(CURSOR)))
    for prefix in ("/v1", "/v1beta", "/v1alpha", "/cursor", "/cursor/v1", "/cursor/v2", ""):
        routes += [
            web.get(prefix + "/models", list_models),
            web.get(prefix + "/models/{model:.+}", one_model),
        ]
    return routes


def _answering(client: ClientProtocol) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        return await _serve(request, client)

    return answer


def _counting(client: ClientProtocol) -> Handler:
    async def count(request: web.Request) -> web.StreamResponse:
        return await count_tokens(request.app[STATE], client, request)

    return count


async def _gemini(request: web.Request) -> web.StreamResponse:
    match request.match_info["action"]:
        case "generateContent" | "streamGenerateContent":
            return await _serve(request, GEMINI)
        case "countTokens":
            return await count_tokens(request.app[STATE], GEMINI, request)
        case _:
            raise web.HTTPNotFound


async def _serve(request: web.Request, client: ClientProtocol) -> web.StreamResponse:
    state = request.app[STATE]
    if state.running >= state.config.server.max_streams:
        return error_response(client, busy(), secrets.token_hex(8))
    return await Serving(state, client, request).run()


async def _no_websocket(request: web.Request) -> web.Response:
    """Codex tries a websocket first and falls back to POST when told so."""
    return web.Response(
        status=426, text="Dragoman speaks Responses over POST.\n", headers={"upgrade": "HTTP/1.1"}
    )


async def _hello(request: web.Request) -> web.Response:
    return web.Response(text="Dragoman is here.\n")


async def _healthz(request: web.Request) -> web.Response:
    return web.json_response({"status": "ok", "streams": request.app[STATE].metrics.under_way()})


async def _metrics(request: web.Request) -> web.Response:
    return web.Response(body=request.app[STATE].metrics.page(), headers={"content-type": CONTENT_TYPE})


async def _end_onlookers(app: web.Application) -> None:
    app[STATE].end_onlookers()


async def _close(app: web.Application) -> None:
    await app[STATE].close()


@web.middleware
async def _guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Before anything else is looked at: may this caller ask at all?"""
    refused = refusal(request)
    if refused is not None:
        return error_response(client_of(request), refused, secrets.token_hex(8))
    return await handler(request)


@web.middleware
async def _always_an_answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every answer has an id, every error the shape of its caller; a fault of ours is told and logged."""
    try:
        response = await handler(request)
    except web.HTTPException as error:
        response = error_response(client_of(request), from_http(request, error), secrets.token_hex(8))
        if isinstance(error, web.HTTPMethodNotAllowed):
            response.headers["allow"] = error.headers["allow"]
    except Exception as error:
        id = secrets.token_hex(8)
        if not _is_gone(request, error):
            log.exception("an exchange failed through a fault of Dragoman's", extra={"exchange": id})
        response = _failed(request, error, id)
    if not response.prepared and EXCHANGE not in response.headers:
        response.headers[EXCHANGE] = secrets.token_hex(8)
    return response


def _is_gone(request: web.Request, error: Exception) -> bool:
    """The client left while we wrote to it: nobody's fault."""
    transport = request.transport
    return isinstance(error, ConnectionError) and (transport is None or transport.is_closing())


def _failed(request: web.Request, error: Exception, id: str) -> web.Response:
    if request.transport is not None and request.writer.output_size:
        # Part of an answer is out already: breaking off is the one ending nobody takes for a good one.
        request.transport.abort()
    return error_response(client_of(request), our_fault(error), id)
