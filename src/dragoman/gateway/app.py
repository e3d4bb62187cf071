"""The HTTP face: which path is whose, and who may knock."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from ..events import Failed, FailureKind
from ..metrics import CONTENT_TYPE
from ..protocols.base import WireProtocol
from ..protocols.registry import protocol
from .counting import count_tokens
from .errors import busy, error_response, unauthorized
from .guard import host_is_ours, is_loopback, key_is_good, presented_key
from .models import list_models
from .serving import Serving
from .state import STATE, State

log = logging.getLogger("dragoman.gateway")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

# The model's name may hold slashes (`openrouter/google/gemini-3-pro`); the verb follows the last colon.
_GEMINI = r"/{version:v1|v1beta}/models/{model:.+}:{action:[A-Za-z]+}"


def create_app(state: State) -> web.Application:
    """The application around `state`."""
    app = web.Application(
        client_max_size=state.config.server.max_body, middlewares=[_guarded, _never_a_traceback]
    )
    app[STATE] = state
    routes: list[web.RouteDef] = []
    for prefix in ("/v1", ""):
        routes += [
            web.post(prefix + "/messages", _answering("anthropic")),
            web.post(prefix + "/messages/count_tokens", _counting("anthropic")),
            web.post(prefix + "/chat/completions", _answering("openai-chat")),
            web.post(prefix + "/responses", _answering("openai-responses")),
            web.get(prefix + "/responses", _no_websocket),
            web.get(prefix + "/models", list_models),
            web.get(prefix + "/models/{model:.+}", list_models),
        ]
    routes += [
        web.post(_GEMINI, _gemini),
        web.get("/v1beta/models", list_models),
        web.get("/v1beta/models/{model:.+}", list_models),
        web.get("/healthz", _healthz),
        web.get("/metrics", _metrics),
        web.route("*", "/", _hello),
        web.route("*", "/api/hello", _hello),
        web.route("*", "/{path:.*}", _nowhere),
    ]
    app.add_routes(routes)
    app.on_cleanup.append(_close)
    return app


def _answering(name: str) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        return await _serve(request, protocol(name))

    return answer


def _counting(name: str) -> Handler:
    async def count(request: web.Request) -> web.StreamResponse:
        return await count_tokens(request.app[STATE], protocol(name), request)

    return count


async def _gemini(request: web.Request) -> web.StreamResponse:
    client = protocol("gemini")
    match request.match_info["action"]:
        case "generateContent" | "streamGenerateContent":
            return await _serve(request, client)
        case "countTokens":
            return await count_tokens(request.app[STATE], client, request)
        case _:
            return await _nowhere(request)


async def _serve(request: web.Request, client: WireProtocol) -> web.StreamResponse:
    state = request.app[STATE]
    if state.running >= state.config.server.max_streams:
        return error_response(client, busy(), "")
    return await Serving(state, client, request).run()


async def _no_websocket(request: web.Request) -> web.Response:
    """Codex tries a websocket first and falls back to POST when told so."""
    return web.Response(
        status=426, text="Dragoman speaks Responses over POST.\n", headers={"upgrade": "HTTP/1.1"}
    )


async def _hello(request: web.Request) -> web.Response:
    return web.Response(text="Dragoman is here.\n")


async def _healthz(request: web.Request) -> web.Response:
    return web.json_response({"status": "ok", "streams": request.app[STATE].running})


async def _metrics(request: web.Request) -> web.Response:
    return web.Response(body=request.app[STATE].metrics.page(), headers={"content-type": CONTENT_TYPE})


async def _nowhere(request: web.Request) -> web.Response:
    message = f"there is nothing at {request.method} {request.path}"
    return web.json_response({"error": {"message": message, "type": "not_found_error"}}, status=404)


async def _close(app: web.Application) -> None:
    await app[STATE].close()


def client_of(request: web.Request) -> WireProtocol:
    """Whose errors a caller understands, by the path it calls."""
    path = request.path
    if path.endswith(("/messages", "/count_tokens")):
        return protocol("anthropic")
    if path.endswith("/responses"):
        return protocol("openai-responses")
    if path.startswith("/v1beta/") or ":" in path.rpartition("/")[2]:
        return protocol("gemini")
    return protocol("openai-chat")


@web.middleware
async def _guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The Host must be ours, and a key must be good, before anything else is looked at."""
    state = request.app[STATE]
    server = state.config.server
    if is_loopback(server.host) and not _host_allowed(request, server.host, server.allowed_hosts):
        hint = "this Host is not served here; add it to server.allowed_hosts if it should be"
        return error_response(client_of(request), unauthorized(hint), "")
    open_to_all = request.path in ("/healthz", "/", "/api/hello")
    if not open_to_all and not key_is_good(presented_key(request), state.keys):
        hint = "send one of server.keys as x-api-key, Authorization: Bearer, or x-goog-api-key"
        return error_response(client_of(request), unauthorized(hint), "")
    return await handler(request)


def _host_allowed(request: web.Request, bound: str, allowed: tuple[str, ...]) -> bool:
    header = request.headers.get("host", "")
    return host_is_ours(header, bound) or header in allowed or header.rpartition(":")[0] in allowed


@web.middleware
async def _never_a_traceback(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A fault of ours is told as one sentence, and logged for us."""
    try:
        return await handler(request)
    except web.HTTPException:
        raise
    except Exception as error:
        log.exception("an exchange failed through a fault of Dragoman's")
        return error_response(client_of(request), _our_fault(error), "")


def _our_fault(error: Exception) -> Failed:
    return Failed(FailureKind.SERVER, f"Dragoman failed: {type(error).__name__}; its log says more", 500)
