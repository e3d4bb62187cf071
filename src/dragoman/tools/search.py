"""Web search for upstreams without one: an ordinary function replaces the hosted tool.

The model calls the function, Dragoman runs the search, and the model gets the result in another request.
Nothing here does I/O: `gateway/exchange/searching.py` runs the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ..model.messages import Request, Search, Source, Text, Tool, ToolCall, ToolChoice, ToolResult
from ..protocols.common.search_limits import limits_of
from ..protocols.common.searches import SEARCH, result_text

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "The search query."}},
    "required": ["query"],
    "additionalProperties": False,
}
_DESCRIPTION = (
    "Search the web. Gives the titles, addresses and short texts of pages that match the query. When you use "
    "what a page says, name its address."
)


class SearchTool(msgspec.Struct, frozen=True, kw_only=True):
    """The function that replaces the client's hosted tool, and the client's limits for searches."""

    name: str
    max_uses: int | None = None
    allowed: tuple[str, ...] = ()
    """Domains. Empty: all."""
    blocked: tuple[str, ...] = ()

    def admitted(self, sources: Iterable[Source], most: int) -> tuple[Source, ...]:
        """The first sources that the client allows."""
        return tuple([source for source in sources if self._admits(source.url)][:most])

    def _admits(self, url: str) -> bool:
        if self.allowed and not any(_is_within(url, domain) for domain in self.allowed):
            return False
        return not any(_is_within(url, domain) for domain in self.blocked)


class SearchCall(msgspec.Struct, frozen=True):
    """A search that the model requests. `id` is the client's id of the call. The query may be empty."""

    id: str
    call: ToolCall
    query: str


def hosted_search(request: Request) -> tuple[int, Tool] | None:
    """The index of the hosted web search in the tools of a request, and the tool."""
    for at, tool in enumerate(request.tools):
        if tool.kind == "hosted" and tool.hosted == SEARCH:
            return at, tool
    return None


def is_expected(request: Request) -> bool:
    """Does the client certainly expect a search? Then an answer from the model's memory would be wrong.

    Claude Code's WebSearch and Gemini CLI's google_web_search send a request whose only tool is the search.
    """
    choice = request.settings.tool_choice
    if choice is not None and choice.mode == "none":
        return False
    if all(tool.hosted == SEARCH for tool in request.tools):
        return True
    if choice is None:
        return False
    name = _hosted_name(request)
    only = choice.mode == "required" and choice.allowed is not None and set(choice.allowed) == {name}
    return only or (choice.mode == "named" and choice.name == name)


def _hosted_name(request: Request) -> str | None:
    found = hosted_search(request)
    return None if found is None else found[1].name


def as_function(request: Request) -> tuple[Request, SearchTool]:
    """Replace the hosted search of `request` by an ordinary function."""
    found = hosted_search(request)
    assert found is not None
    at, hosted = found
    others = [tool for place, tool in enumerate(request.tools) if place != at and tool.hosted != SEARCH]
    name = SEARCH if all(tool.name != SEARCH for tool in others) else f"dragoman_{SEARCH}"
    function = Tool(name=name, description=_DESCRIPTION, parameters=_SCHEMA, cache=hosted.cache)
    tools = [*others[:at], function, *others[at:]]
    settings, choice = request.settings, request.settings.tool_choice
    if choice is not None:
        settings = msgspec.structs.replace(settings, tool_choice=_renamed(choice, hosted.name, name))
    return request.changed(tools=tuple(tools), settings=settings), _limits(hosted, name)


def without(request: Request) -> Request:
    """Remove the web search from `request`."""
    tools = tuple(tool for tool in request.tools if tool.hosted != SEARCH)
    settings, choice = request.settings, request.settings.tool_choice
    if choice is not None and choice.allowed is not None:
        allowed = tuple(name for name in choice.allowed if name != _hosted_name(request))
        choice = msgspec.structs.replace(choice, allowed=allowed)
        settings = msgspec.structs.replace(settings, tool_choice=choice)
    return request.changed(tools=tools, settings=settings)


def _renamed(choice: ToolChoice, before: str, now: str) -> ToolChoice:
    allowed = choice.allowed and tuple(now if name == before else name for name in choice.allowed)
    if choice.mode == "named" and choice.name == before and choice.namespace is None:
        return ToolChoice("named", now, allowed=allowed)
    return msgspec.structs.replace(choice, allowed=allowed)


def free_choice(request: Request) -> Request:
    """Lift a forced tool choice after the search: otherwise the model would search again and never answer."""
    choice = request.settings.tool_choice
    if choice is None or choice.mode not in ("named", "required"):
        return request
    settings = msgspec.structs.replace(
        request.settings, tool_choice=msgspec.structs.replace(choice, mode="auto", name=None, namespace=None)
    )
    return request.changed(settings=settings)


def _limits(hosted: Tool, name: str) -> SearchTool:
    """The client's limits, which are in its hosted tool."""
    given = limits_of(hosted)
    return SearchTool(name=name, max_uses=given.max_uses, allowed=given.allowed, blocked=given.blocked)


def _is_within(url: str, domain: str) -> bool:
    """Is the page on the domain, or on one below it? A domain may name a path: `example.com/blog`."""
    host, path = _place(domain)
    own, page = _place(url)
    return (own == host or own.endswith("." + host)) and page.startswith(path)


def _place(url: str) -> tuple[str, str]:
    """The host of an address, and its path."""
    host, _, path = url.lower().rpartition("://")[2].partition("/")
    return host.rpartition("@")[2].partition(":")[0], path


def answered(searches: Sequence[tuple[SearchCall, Search]]) -> list[tuple[ToolCall, ToolResult]]:
    """The calls of the searches with their results, for the model's next turn."""
    return [
        (
            asked.call,
            ToolResult(
                call_id=asked.call.id,
                parts=(Text(result_text(found)),),
                is_error=found.error is not None,
                name=asked.call.name,
            ),
        )
        for asked, found in searches
    ]
