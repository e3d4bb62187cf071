"""The routing table: path and method to handler."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from .answers import HttpAnswer
from .refusals import MethodNotAllowed, NotFound
from .request import HttpRequest

Handler = Callable[[HttpRequest], Awaitable[HttpAnswer]]

_NO_HANDLERS: dict[str, Handler] = {}
_PART = re.compile(r"\{(\w+)(?::([^{}]+))?\}")


class Route(NamedTuple):
    """`{name}` in the path matches one segment, `{name:pattern}` matches a regular expression."""

    method: str
    path: str
    handler: Handler


class Routes:
    """Fixed paths first, then patterns in order. Each GET route also handles HEAD."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._fixed: dict[str, dict[str, Handler]] = {}
        self._patterns: dict[re.Pattern[str], dict[str, Handler]] = {}
        for method, path, handler in routes:
            if "{" in path:
                handlers = self._patterns.setdefault(compiled(path), {})
            else:
                handlers = self._fixed.setdefault(path, {})
            for each in ("GET", "HEAD") if method == "GET" else (method,):
                handlers[each] = handler

    def find(self, request: HttpRequest) -> Handler:
        """The handler for `request`. Fills `request.parts`. Raises `NotFound` or `MethodNotAllowed`."""
        fixed = self._fixed.get(request.path, _NO_HANDLERS)
        handler = fixed.get(request.method)
        if handler is not None:
            return handler
        allowed = set(fixed)
        for pattern, handlers in self._patterns.items():
            match = pattern.fullmatch(request.path)
            if match is None:
                continue
            handler = handlers.get(request.method)
            if handler is not None:
                request.parts = match.groupdict()
                return handler
            allowed |= handlers.keys()
        if allowed:
            raise MethodNotAllowed(sorted(allowed))
        raise NotFound


def compiled(path: str) -> re.Pattern[str]:
    """The regular expression for a route's path."""
    pattern, at = "", 0
    for part in _PART.finditer(path):
        pattern += f"{re.escape(path[at : part.start()])}(?P<{part[1]}>{part[2] or '[^/]+'})"
        at = part.end()
    return re.compile(pattern + re.escape(path[at:]))
