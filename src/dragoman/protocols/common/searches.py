"""Write earlier web searches of Dragoman as ordinary calls and results, which every upstream understands."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...model.messages import Message, Part, Search, Text, ToolCall, ToolResult

SEARCH = "web_search"
"""The name of the hosted tool, and of the function that replaces it."""

_PROBLEMS = {
    "max_uses_exceeded": "There were too many searches. This one was not run. Answer with what you know.",
    "invalid_tool_input": "The search has no query. It was not run.",
    "unavailable": "The search failed. Say so, or answer without it.",
}


def result_text(search: Search) -> str:
    """The text of a search result for the model."""
    if search.error is not None:
        return _PROBLEMS.get(search.error, _PROBLEMS["unavailable"])
    if not search.sources:
        return f"Nothing was found for {search.query!r}."
    found = [
        f"{number}. {source.title}\n{source.url}\n{source.text}".rstrip()
        for number, source in enumerate(search.sources, 1)
    ]
    return "\n\n".join(found)


def call_of(search: Search) -> ToolCall:
    """The call that asked for the search."""
    arguments = msgspec.json.encode({"query": search.query}).decode()
    return ToolCall(id=search.id, name=SEARCH, arguments=arguments)


def result_of(search: Search) -> ToolResult:
    return ToolResult(
        call_id=search.id,
        parts=(Text(result_text(search)),),
        is_error=search.error is not None,
        name=SEARCH,
    )


def with_calls(messages: Sequence[Message]) -> list[Message]:
    """Replace each search in `messages` by a call of the model and a result of the user.

    The model continued after a search, so its message becomes several messages. If it also called tools of
    the client in that turn, the search results go into the client's next message, beside the other results:
    upstreams require all results of a turn in one message.
    """
    out: list[Message] = []
    waiting: tuple[ToolResult, ...] = ()
    for message in messages:
        if any(type(part) is Search for part in message.parts):
            waiting = (*waiting, *_split(message, out))
        elif waiting and message.role == "user":
            out.append(Message("user", (*waiting, *message.parts), message.name))
            waiting = ()
        else:
            out.append(message)
    if waiting:
        out.append(Message("user", waiting))
    return out


def _split(message: Message, out: list[Message]) -> tuple[ToolResult, ...]:
    """Split a message into turns, which go to `out`. Returns results that must wait for the client's."""
    turn: list[Part] = []
    results: list[ToolResult] = []
    for part in message.parts:
        if type(part) is Search:
            turn.append(call_of(part))
            results.append(result_of(part))
            continue
        if results and not _calls_others(turn):
            out += (Message(message.role, tuple(turn)), Message("user", tuple(results)))
            turn, results = [], []
        turn.append(part)
    out.append(Message(message.role, tuple(turn)))
    if results and not _calls_others(turn):
        out.append(Message("user", tuple(results)))
        return ()
    return tuple(results)


def _calls_others(turn: Sequence[Part]) -> bool:
    return any(isinstance(part, ToolCall) and part.name != SEARCH for part in turn)
