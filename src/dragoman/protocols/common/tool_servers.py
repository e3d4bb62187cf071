"""MCP servers that the provider is to connect to: which of them can be named to another provider."""

from __future__ import annotations

from ...model.errors import BadRequest
from ...model.messages import Tool, ToolServer
from .fields import Obj, is_object
from .notices import Notices

_AUTHORIZATION = "authorization"
_BEARER = "bearer "


def reachable(tool: Tool, where: str, notices: Notices, *, asks: bool = False, filters: bool) -> ToolServer:
    """The server of `tool`, which stands at `where`, or a refusal.

    `asks`: the upstream asks the user for approval. `filters`: it can be told which tools may be called.
    """
    server = tool.server
    if server is None:
        raise BadRequest("this upstream reaches tool servers only by an address, and there is none", where)
    if server.approval and not asks:
        message = 'this upstream asks nobody for approval of calls: set require_approval to "never"'
        raise BadRequest(message, where)
    if server.approval is None and not asks:
        message = "this upstream calls the tools of a server without asking for approval"
        notices.say("approval-dropped", where, message)
    if server.denied or (server.allowed is not None and not filters):
        raise BadRequest("this upstream cannot be kept from some of the tools of a server", where)
    return server


def token_and_headers(headers: Obj | None) -> tuple[str | None, dict[str, str] | None]:
    """The bearer token in `headers`, if there is one, and the rest of them."""
    given = {name: value for name, value in (headers or {}).items() if isinstance(value, str)}
    name = next((name for name in given if name.lower() == _AUTHORIZATION), None)
    if name is None or not given[name].lower().startswith(_BEARER):
        return None, given or None
    token = given.pop(name)[len(_BEARER) :].strip()
    return token, given or None


def enabled(config: object, default: bool) -> bool:
    """Does a small table of settings switch something on?"""
    said = config.get("enabled") if is_object(config) else None
    return said if isinstance(said, bool) else default
