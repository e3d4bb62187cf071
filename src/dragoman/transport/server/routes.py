"""Which path is whose."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from .answers import HttpAnswer
from .refusals import MethodNotAllowed, NotFound
from .request import HttpRequest

Handler = Callable[[HttpRequest], Awaitable[HttpAnswer]]

_NOBODY: dict[str, Handler] = {}
_PART = re.compile(r"\{(\w+)(?::([^{}]+))?\}")


class Route(NamedTuple):
    """`{name}` in a path stands for one part of it, `{name:pattern}` for whatever the pattern matches."""

    method: str
    path: str
    handler: Handler


class Routes:
    """Plain paths are looked up, patterns tried in their order. Whoever answers GET answers HEAD."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._plain: dict[str, dict[str, Handler]] = {}
        self._patterns: dict[re.Pattern[str], dict[str, Handler]] = {}
        for method, path, handler in routes:
            if "{" in path:
                handlers = self._patterns.setdefault(compiled(path), {})
            else:
                handlers = self._plain.setdefault(path, {})
            for each in ("GET", "HEAD") if method == "GET" else (method,):
                handlers[each] = handler

    def find(self, request: HttpRequest) -> Handler:
        """Who answers `request`; what the pattern took from the path is in its `parts`."""
        plain = self._plain.get(request.path, _NOBODY)
        handler = plain.get(request.method)
        if handler is not None:
            return handler
        allowed = set(plain)
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
