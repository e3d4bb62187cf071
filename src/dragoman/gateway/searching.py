"""Web searches for upstreams that have none: by a search engine over HTTP, or by a program.

`[search]` says how. A search that fails is told to the model and to the client; it does not end the answer.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import urlencode, urlsplit, urlunsplit

import msgspec

from ..config.types import SearchConfig
from ..credentials.base import ReadProblem
from ..credentials.command_environment import command_environment
from ..credentials.program import run_program
from ..model.errors import BadRequest
from ..model.events import Failed, FailureKind
from ..model.messages import Message, Notice, Request, Search, Source, Text, ToolCall
from ..protocols.base import Target, WireProtocol
from ..protocols.common import call_ids
from ..protocols.common.failures import UpstreamFailed
from ..protocols.common.searches import with_calls
from ..tools import search
from ..tools.search import SearchCall, SearchTool
from ..transport.client import HttpError
from .upstream import Pool

_MOST_BYTES = 2 * 1024 * 1024
_LONGEST_QUERY = 1000
_LONGEST_TITLE = 300
_LONGEST_TEXT = 2000
# A model that is told that there were too many searches, and goes on so often, does not stop.
_MOST_REFUSED = 3
_DROPPED = "hosted-tool-dropped"


class _Page(msgspec.Struct, frozen=True):
    url: str = ""
    title: str | None = None
    content: str | None = None


class _Found(msgspec.Struct, frozen=True):
    results: list[_Page]


_decode = msgspec.json.Decoder(_Found).decode


class CannotSearch(BadRequest):
    """The client needs a search, and this target cannot run one. Nor can Dragoman."""


class SearchFailed(Exception):
    """Why there is no result, as the end of a sentence that begins with "the search"."""


def prepared(
    request: Request, wire: WireProtocol, target: Target, config: SearchConfig, *, upstream_may: bool
) -> tuple[Request, SearchTool | None, tuple[Notice, ...]]:
    """`request` so that its web search works at the target, and the function that stands for it.

    `upstream_may`: the upstream may be asked to search itself, if its protocol and model can.
    """
    found = search.hosted_search(request)
    if found is None:
        return request, None, ()
    if upstream_may:
        concerned = config.can_search or search.is_expected(request)
        if not concerned or not _is_dropped(request, found[0], wire, target):
            return request, None, ()  # the upstream searches, or the writer leaves it out and says so
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


def _is_dropped(request: Request, at: int, wire: WireProtocol, target: Target) -> bool:
    """Does the writer leave the search out? Only it knows what the upstream's model takes."""
    lenient = msgspec.structs.replace(target, strict=False)
    # The tools tell it: the conversation need not be written twice.
    question = Message("user", (Text("?"),))
    notices = wire.write_request(request.changed(messages=(question,)), lenient).notices
    return any(n.rule == _DROPPED and n.path in ("tools", f"tools[{at}]") for n in notices)


class SearchMemory:
    """Searches beside calls of clients whose protocol has no place for them, until the next turn.

    The least recently used are dropped first. The model may search again then.
    """

    def __init__(self, most: int = 1000) -> None:
        self._most = most
        self._found: OrderedDict[tuple[str, str], tuple[Search, ...]] = OrderedDict()

    def keep(self, scope: str, calls: Iterable[ToolCall], found: Sequence[Search]) -> None:
        """Remember `found` by the calls of the same turn. Nobody gets what was found for somebody else."""
        for call in calls:
            self._found[scope, call_ids.from_client(call.id)] = tuple(found)
            self._found.move_to_end((scope, call_ids.from_client(call.id)))
        while len(self._found) > self._most:
            self._found.popitem(last=False)

    def restore(self, request: Request, scope: str) -> Request:
        """`request` with the searches that belong to its turns."""
        if not self._found:
            return request
        messages = [self._with_search(message, scope) for message in request.messages]
        if all(new is old for new, old in zip(messages, request.messages, strict=True)):
            return request
        return request.changed(messages=tuple(with_calls(messages)))

    def _with_search(self, message: Message, scope: str) -> Message:
        for part in message.parts if message.role == "assistant" else ():
            found = self._found.get((scope, part.id)) if isinstance(part, ToolCall) else None
            if found:
                return Message(message.role, (*message.parts, *found), message.name)
        return message


class Searching:
    """The searches of one answer."""

    def __init__(
        self,
        config: SearchConfig,
        tool: SearchTool,
        pool: Pool,
        environment: Mapping[str, str],
        say: Callable[[Notice], None],
    ) -> None:
        self._config = config
        self._tool = tool
        self._pool = pool
        self._environment = environment
        self._say = say
        own = tool.max_uses
        self._left = config.max_uses if own is None else min(own, config.max_uses)
        self._refused = 0

    @property
    def name(self) -> str:
        """The function that the model calls."""
        return self._tool.name

    async def run(self, calls: Sequence[SearchCall]) -> list[Search]:
        """What was found, for each call. All run at the same time."""
        return list(await asyncio.gather(*[self._one(call, self._refusal(call)) for call in calls]))

    def _refusal(self, call: SearchCall) -> str | None:
        """Why a call is not run, as Anthropic's code."""
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
        if self._refused > _MOST_REFUSED:
            message = f"the model goes on to search after {self._refused} searches that were not run"
            raise UpstreamFailed(
                Failed(FailureKind.UPSTREAM, message, 502, "endless_search"), retryable=False
            )
        return code

    async def _one(self, call: SearchCall, refusal: str | None) -> Search:
        query = call.query
        if refusal is not None:
            self._say(Notice("search-not-run", "answer", f"a search was not run: {refusal}"))
            return Search(id=call.id, query=query[:_LONGEST_QUERY], error=refusal)
        try:
            pages = await self._pages(query)
        except SearchFailed as error:
            self._say(Notice("search-failed", "answer", f"the search for {query!r} {error}"))
            return Search(id=call.id, query=query, error="unavailable")
        sources = self._tool.admitted(_sources(pages), self._config.results)
        self._say(Notice("web-searched", "answer", f"searched for {query!r}: {len(sources)} pages"))
        return Search(id=call.id, query=query, sources=sources)

    async def _pages(self, query: str) -> list[_Page]:
        config = self._config
        try:
            async with asyncio.timeout(config.timeout):
                data = await (self._printed(query) if config.command else self._answered(query))
        except TimeoutError:
            raise SearchFailed(f"took more than {config.timeout:g} seconds (timeout in [search])") from None
        try:
            return _decode(data).results
        except (msgspec.DecodeError, UnicodeDecodeError):
            form = '{"results": [{"url": …, "title": …, "content": …}]}'
            raise SearchFailed(f"gave no JSON of the form {form}") from None

    async def _answered(self, query: str) -> bytes:
        url = _with_query(self._config.url or "", query)
        timeout = self._config.timeout
        headers = {"accept": "application/json"}
        try:
            response = await self._pool.client.ask(
                "GET", url, headers, connect_timeout=timeout, idle_timeout=timeout
            )
            try:
                status, data = response.status, await response.read(_MOST_BYTES + 1)
            finally:
                await response.close()
        except HttpError as error:
            raise SearchFailed(f"could not be sent: {error or type(error).__name__}") from None
        if status != 200:
            raise SearchFailed(f"was answered with HTTP {status}")
        if len(data) > _MOST_BYTES:
            raise SearchFailed(f"was answered with more than {_MOST_BYTES >> 20} MiB")
        return data

    async def _printed(self, query: str) -> bytes:
        config = self._config
        environment = command_environment(self._environment, config.env)
        # The model writes the query: it must not become an option of the program.
        command = (*config.command, query.lstrip("-").lstrip())
        # The timeout around this is the one that counts.
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
