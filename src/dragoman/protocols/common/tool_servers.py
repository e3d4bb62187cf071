"""MCP servers that the provider connects to, and whether another provider can connect to them, too."""

from __future__ import annotations

from ...model.errors import BadRequest
from ...model.messages import Tool, ToolServer
from .fields import Obj, is_object

_AUTHORIZATION = "authorization"
_BEARER = "bearer "


def reachable(tool: Tool, where: str, *, asks: bool = False, filters: bool) -> ToolServer:
    """The server of `tool`, which has the path `where`. Raises `BadRequest` if the upstream cannot use it.

    `asks`: the upstream supports approval of calls. `filters`: it supports a list of allowed tools.
    """
    server = tool.server
    if server is None:
        raise BadRequest(
            "this upstream needs the address of the tool server, and the request has none", where
        )
    if server.approval and not asks:
        # Not a notice: without the approval, calls would run that the user wanted to see first.
        message = 'this upstream does not ask for approval of calls: set require_approval to "never"'
        raise BadRequest(message, where)
    if server.denied or (server.allowed is not None and not filters):
        # A notice is not enough here, either: the model could call a tool that the client excluded.
        raise BadRequest("this upstream cannot exclude some tools of a server", where)
    return server


def token_and_headers(headers: Obj | None) -> tuple[str | None, dict[str, str] | None]:
    """The bearer token in `headers`, or None, and the other headers."""
    given = {name: value for name, value in (headers or {}).items() if isinstance(value, str)}
    name = next((name for name in given if name.lower() == _AUTHORIZATION), None)
    if name is None or not given[name].lower().startswith(_BEARER):
        return None, given or None
    token = given.pop(name)[len(_BEARER) :].strip()
    return token, given or None


def enabled(config: object, default: bool) -> bool:
    """The `enabled` member of a settings object, or the default."""
    chosen = config.get("enabled") if is_object(config) else None
    return chosen if isinstance(chosen, bool) else default
