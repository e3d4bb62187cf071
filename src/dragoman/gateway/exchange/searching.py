"""Run web searches for upstreams without web search: with a search engine over HTTP, or with a program.

`[search]` in the config sets it up. A failed search does not end the answer: the model and the client get an
error as the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import urlencode, urlsplit, urlunsplit

import msgspec

from ...config.types import SearchConfig
from ...credentials.base import ReadProblem
from ...credentials.command_environment import command_environment
from ...credentials.program import run_program
from ...model.errors import BadRequest
from ...model.events import Failed, FailureKind
from ...model.messages import Message, Notice, Request, Search, Source, Text
from ...protocols.base import Target
from ...protocols.common.failures import UpstreamFailed
from ...protocols.registry import AnyUpstream
from ...tools import search
from ...tools.search import SearchCall, SearchTool
from ...transport.client import HttpError
from ..upstreams.call import Pool

# Bounds for what a search engine returns: the pages go into the prompt, where the user pays for each token.
_MAX_BYTES = 2 * 1024 * 1024
_LONGEST_QUERY = 1000
_LONGEST_TITLE = 300
_LONGEST_TEXT = 2000
# The model got this many refusals and still searches. It will not stop by itself, so the answer fails.
_MAX_REFUSED = 3
_DROPPED = "hosted-tool-dropped"


class _Page(msgspec.Struct, frozen=True):
    url: str = ""
    title: str | None = None
    content: str | None = None


class _EngineResults(msgspec.Struct, frozen=True):
    results: list[_Page]


_decode = msgspec.json.Decoder(_EngineResults).decode


class CannotSearch(BadRequest):
    """The client needs a search, and neither this target nor Dragoman can run one."""


class SearchFailed(Exception):
    """The search has no result. The text continues a sentence that begins with "the search"."""


def prepare_search(
    request: Request, wire: AnyUpstream, target: Target, config: SearchConfig, *, upstream_may: bool
) -> tuple[Request, SearchTool | None, tuple[Notice, ...]]:
    """Prepare the web search of `request` for the target. Also returns the function that replaces it, if any.

    `upstream_may`: the config allows the upstream to search by itself, if its protocol and model can.
    """
    found = search.hosted_search(request)
    if found is None:
        return request, None, ()
    if upstream_may:
        concerned = config.can_search or search.is_expected(request)
        if not concerned or not _is_dropped(request, found[0], wire, target):
            return request, None, ()  # the upstream searches, or the writer drops the tool with a notice
    if config.can_search:
        changed, tool = search.as_function(request)
        return changed, tool, ()
    where = f"tools[{found[0]}]"
    if search.is_expected(request):
        message = (
            f"a web search was asked for, but {target.issuer or 'this upstream'} cannot search the web with "
            f"{target.model}; set url or command in [search], or route this model to an upstream that can"
        )
        raise CannotSearch(message, where)
    notice = Notice(_DROPPED, where, f"{target.issuer} cannot search the web")
    if target.strict:
        raise BadRequest(notice.message, where)
    return search.without(request), None, (notice,)


def _is_dropped(request: Request, at: int, wire: AnyUpstream, target: Target) -> bool:
    """Does the request writer drop the search? Only the writer knows what the upstream's model supports."""
    lenient = msgspec.structs.replace(target, strict=False)
    # The tools decide that. A short conversation is enough, and the real one is not written twice.
    question = Message("user", (Text("?"),))
    notices = wire.write_request(request.changed(messages=(question,)), lenient).notices
    return any(n.rule == _DROPPED and n.path in ("tools", f"tools[{at}]") for n in notices)


class SearchRunner:
    """The searches of one answer."""

    def __init__(
        self,
        config: SearchConfig,
        tool: SearchTool,
        pool: Pool,
        environment: Mapping[str, str],
        notify: Callable[[Notice], None],
    ) -> None:
        self._config = config
        self._tool = tool
        self._pool = pool
        self._environment = environment
        self._notify = notify
        own = tool.max_uses
        self._left = config.max_uses if own is None else min(own, config.max_uses)
        self._refused = 0

    @property
    def name(self) -> str:
        """The name of the function that the model calls."""
        return self._tool.name

    async def run(self, calls: Sequence[SearchCall]) -> list[Search]:
        """Run all searches at the same time. Returns the result of each call."""
        return list(await asyncio.gather(*[self._run_one(call, self._refusal(call)) for call in calls]))

    def _refusal(self, call: SearchCall) -> str | None:
        """Why a call is not run: one of Anthropic's error codes for web searches, or None."""
        if not call.query:
            return self._refuse("invalid_tool_input")
        if len(call.query) > _LONGEST_QUERY:
            return self._refuse("query_too_long")
        if self._left <= 0:
            return self._refuse("max_uses_exceeded")
        self._left -= 1
        return None

    def _refuse(self, code: str) -> str:
        self._refused += 1
        if self._refused > _MAX_REFUSED:
            message = f"the model still searches after {self._refused} searches that were not run"
            raise UpstreamFailed(
                Failed(FailureKind.UPSTREAM, message, 502, "endless_search"), retryable=False
            )
        return code

    async def _run_one(self, call: SearchCall, refusal: str | None) -> Search:
        query = call.query
        if refusal is not None:
            self._notify(Notice("search-not-run", "answer", f"a search was not run: {refusal}"))
            return Search(id=call.id, query=query[:_LONGEST_QUERY], error=refusal)
        try:
            pages = await self._pages(query)
        except SearchFailed as error:
            self._notify(Notice("search-failed", "answer", f"the search for {query!r} {error}"))
            return Search(id=call.id, query=query, error="unavailable")
        sources = self._tool.admitted(_sources(pages), self._config.results)
        self._notify(Notice("web-searched", "answer", f"searched for {query!r}: {len(sources)} pages"))
        return Search(id=call.id, query=query, sources=sources)

    async def _pages(self, query: str) -> list[_Page]:
        config = self._config
        try:
            async with asyncio.timeout(config.timeout):
                data = await (self._run_program(query) if config.command else self._ask_engine(query))
        except TimeoutError:
            raise SearchFailed(f"took more than {config.timeout:g} seconds (timeout in [search])") from None
        try:
            return _decode(data).results
        except (msgspec.DecodeError, UnicodeDecodeError):
            form = '{"results": [{"url": …, "title": …, "content": …}]}'
            raise SearchFailed(f"returned no JSON of the form {form}") from None

    async def _ask_engine(self, query: str) -> bytes:
        url = _with_query(self._config.url or "", query)
        timeout = self._config.timeout
        headers = {"accept": "application/json"}
        try:
            response = await self._pool.client.request(
                "GET", url, headers, connect_timeout=timeout, idle_timeout=timeout
            )
            try:
                status, data = response.status, await response.read(_MAX_BYTES + 1)
            finally:
                await response.close()
        except HttpError as error:
            raise SearchFailed(f"could not be sent: {error}") from None
        if status != 200:
            raise SearchFailed(f"was answered with HTTP {status}")
        if len(data) > _MAX_BYTES:
            raise SearchFailed(f"was answered with more than {_MAX_BYTES >> 20} MiB")
        return data

    async def _run_program(self, query: str) -> bytes:
        config = self._config
        environment = command_environment(self._environment, config.env)
        # The model writes the query, perhaps from a page that it read. It must not become an option of the
        # program (`--output=/etc/…`). There is no shell, so nothing else in it is special.
        command = (*config.command, query.lstrip("-").lstrip())
        # The caller's timeout is shorter and ends the program first.
        output = await run_program(command, environment=environment, seconds=2 * config.timeout)
        if isinstance(output, ReadProblem):
            raise SearchFailed(f"was not run: the command {config.command[0]} {output.why}")
        return output


def _sources(pages: Iterable[_Page]) -> Iterable[Source]:
    seen: set[str] = set()
    for page in pages:
        if page.url.startswith(("http://", "https://")) and page.url not in seen:
            seen.add(page.url)
            title, text = " ".join((page.title or "").split()), (page.content or "").strip()
            yield Source(page.url, title[:_LONGEST_TITLE], text[:_LONGEST_TEXT])


def _with_query(url: str, query: str) -> str:
    parts = urlsplit(url)
    added = urlencode({"q": query, "format": "json"}, errors="replace")
    return urlunsplit(parts._replace(query=f"{parts.query}&{added}" if parts.query else added))
