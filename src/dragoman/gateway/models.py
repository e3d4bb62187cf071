"""`/v1/models` in the shape the caller understands."""

from __future__ import annotations

from typing import Any

from ..http.server import Handler, Request, Response, Route, json_response
from ..protocols import failures
from ..router import NoRoute
from .errors import client_of, error_response
from .state import State

Shown = dict[str, Any]


def routes(state: State) -> list[Route]:
    async def every(request: Request) -> Response:
        return await _all(state, request)

    async def one(request: Request) -> Response:
        return _one(state, request)

    places = ("/v1", "/v1beta", "/v1alpha", "/cursor", "/cursor/v1", "/cursor/v2", "")
    handlers: dict[str, Handler] = {"/models": every, "/models/{model:.+}": one}
    return [Route("GET", place + path, handler) for place in places for path, handler in handlers.items()]


async def _all(state: State, request: Request) -> Response:
    """All models clients may name."""
    names = await state.catalogue.models(state.config)
    match client_of(request).name:
        case "anthropic":
            return json_response(_anthropic_list([_anthropic(name) for name in names]))
        case "gemini":
            return json_response({"models": [_gemini(name) for name in names]})
        case _:
            return json_response({"object": "list", "data": [_openai(name) for name in names]})


def _one(state: State, request: Request) -> Response:
    """The model that is asked for: there is one wherever a request for it would go somewhere."""
    client = client_of(request)
    name = request.parts["model"].removeprefix("models/")
    try:
        state.choices(name)
    except NoRoute as error:
        return error_response(client, failures.of_request(error), "")
    shown = {"anthropic": _anthropic, "gemini": _gemini}.get(client.name, _openai)
    return json_response(shown(name))


def _anthropic(name: str) -> Shown:
    return {"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"}


def _openai(name: str) -> Shown:
    return {"id": name, "object": "model", "created": 0, "owned_by": "dragoman"}


def _gemini(name: str) -> Shown:
    methods = ["generateContent", "streamGenerateContent", "countTokens"]
    return {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods}


def _anthropic_list(entries: list[Shown]) -> Shown:
    first, last = (entries[0]["id"], entries[-1]["id"]) if entries else (None, None)
    return {"data": entries, "has_more": False, "first_id": first, "last_id": last}
