"""`/v1/models` in the shape the caller understands."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from ..router import models
from .state import STATE


async def list_models(request: web.Request) -> web.Response:
    """All models clients may name, or the one that is asked for."""
    names = models(request.app[STATE].config)
    wanted = request.match_info.get("model")
    if wanted is None:
        return web.json_response(_listing(request)([_entry(request)(name) for name in names]))
    name = wanted.removeprefix("models/")
    if name not in names:
        message = f"there is no model {name!r} here; GET /v1/models lists them"
        return web.json_response({"error": {"message": message, "type": "not_found_error"}}, status=404)
    return web.json_response(_entry(request)(name))


def _shape(request: web.Request) -> str:
    """Told apart by headers, since Anthropic and OpenAI share the path."""
    if request.path.startswith("/v1beta") or "x-goog-api-key" in request.headers:
        return "gemini"
    return "anthropic" if "anthropic-version" in request.headers else "openai"


def _entry(request: web.Request) -> Any:
    return {"anthropic": _anthropic, "gemini": _gemini, "openai": _openai}[_shape(request)]


def _listing(request: web.Request) -> Any:
    return {"anthropic": _anthropic_list, "gemini": _gemini_list, "openai": _openai_list}[_shape(request)]


def _anthropic(name: str) -> dict[str, Any]:
    return {"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"}


def _openai(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "dragoman"}


def _gemini(name: str) -> dict[str, Any]:
    methods = ["generateContent", "streamGenerateContent", "countTokens"]
    return {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods}


def _anthropic_list(entries: list[dict[str, Any]]) -> dict[str, Any]:
    first, last = (entries[0]["id"], entries[-1]["id"]) if entries else (None, None)
    return {"data": entries, "has_more": False, "first_id": first, "last_id": last}


def _openai_list(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"object": "list", "data": entries}


def _gemini_list(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"models": entries}
