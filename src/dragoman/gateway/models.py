"""`/v1/models` in the shape the caller understands."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from ..protocols import failures
from ..router import NoRoute
from .errors import client_of, error_response
from .state import STATE

Shown = dict[str, Any]


async def list_models(request: web.Request) -> web.Response:
    """All models clients may name."""
    state = request.app[STATE]
    names = await state.catalogue.models(state.config)
    match client_of(request).name:
        case "anthropic":
            return web.json_response(_anthropic_list([_anthropic(name) for name in names]))
        case "gemini":
            return web.json_response({"models": [_gemini(name) for name in names]})
        case _:
            return web.json_response({"object": "list", "data": [_openai(name) for name in names]})


async def one_model(request: web.Request) -> web.Response:
    """The model that is asked for: there is one wherever a request for it would go somewhere."""
    client = client_of(request)
    name = request.match_info["model"].removeprefix("models/")
    try:
        request.app[STATE].choices(name)
    except NoRoute as error:
        return error_response(client, failures.of_request(error), "")
    shown = {"anthropic": _anthropic, "gemini": _gemini}.get(client.name, _openai)
    return web.json_response(shown(name))


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
