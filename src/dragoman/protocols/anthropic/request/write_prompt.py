"""Write tools, system prompt and conversation, in the order in which Anthropic puts them into the prompt.

Cache marks and call ids depend on this order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ....model.messages import Cache, Message, Request, Text, members_for
from ...base import Target
from ...common import cache_breakpoints
from ...common.call_ids import IdRule, UniqueIds
from ...common.fields import Obj, is_array
from ...common.notices import Notices
from ...common.tool_names import ToolNames
from ...common.turns import (
    PLACEHOLDER,
    MergedTurn,
    begins_answer,
    has_calls,
    note_placeholder,
    note_prefill,
    turns,
)
from ...common.typed_json import LazyArray, unchanged_array
from ..own import NAME, is_clients, is_own
from .write_blocks import BlockWriter, ContentFilter, Marks, cache_control
from .write_tools import ToolWriter

_MARKED_TURNS = cache_breakpoints.MAX_BREAKPOINTS - 2


class Prompt(msgspec.Struct, frozen=True):
    """The fields of a body that make up the prompt. `msgspec.Raw`: JSON that the client sent."""

    system: str | list[Obj] | msgspec.Raw | None
    messages: list[Any] | msgspec.Raw
    tools: list[Any] | msgspec.Raw
    servers: list[Obj]
    """The MCP servers of these tools."""
    callable: bool
    """May the model call the tools? False: they are declared only because the history has calls."""
    copied: bool
    """Are all messages as the client sent them?"""


class PromptWriter:
    """Writes the prompt of one request.

    `own`: the client speaks Anthropic, so most of its messages and tools are copied.
    """

    def __init__(
        self, request: Request, target: Target, names: ToolNames, notices: Notices, *, own: bool
    ) -> None:
        self._request = request
        self._target = target
        self._names = names
        self._notices = notices
        self._own = own

    def write(self, rule: IdRule, instruction: str | None, *, remembers: bool) -> Prompt:
        """Write the prompt. `instruction` goes to the end of the system prompt, to keep the cached prefix.

        `remembers`: if no tool is offered, declare those that earlier turns called.
        """
        given, marks = self._request.messages, Marks(0, self._notices)
        leading = _leading(given)
        copied = unchanged_array([message.raw for message in given[leading:]]) if self._own else None
        messages = self._carried(given if copied is None else given[:leading])
        if not self._own:
            number = cache_breakpoints.count_marks(messages) + self._marks_on_tools()
            marks = Marks(number, self._notices, wanted=self._target.takes.caches is not False)
        writer = ToolWriter(self._request, self._names, marks, self._notices)
        tools = writer.offered()
        blocks = BlockWriter(self._names, UniqueIds(rule), marks, self._notices, own=self._own)
        system = _system(messages[:leading], blocks, instruction)
        written = copied or self._conversation(messages[leading:], blocks)
        if isinstance(written, list):
            written = self._completed(written, tools, system, given[leading:])
        return Prompt(
            system=_shortest(system),
            messages=written,
            tools=tools or (writer.remembered() if remembers else []),
            servers=writer.servers,
            callable=bool(tools),
            copied=copied is not None,
        )

    def _completed(
        self, written: list[Any], tools: Any, system: Any, given: Sequence[Message]
    ) -> list[Any] | msgspec.Raw:
        if self._own:
            return _with_copied_beginning(written, given)
        written = _beginning_with_user(written, self._notices)
        if self._target.marks_prompts and cache_breakpoints.marks_nothing(self._request):
            _mark_prompt(tools, system, written, self._notices)
        return written

    def _carried(self, messages: Sequence[Message]) -> list[Message]:
        content_filter = ContentFilter(self._target, self._notices, own=self._own)
        return [
            message if is_own(message.raw) else content_filter.message(message, index)
            for index, message in enumerate(messages)
        ]

    def _marks_on_tools(self) -> int:
        return sum(tool.cache is not None for tool in self._request.tools)

    def _conversation(self, messages: Sequence[Message], blocks: BlockWriter) -> list[Any]:
        """Write the messages of an Anthropic client one by one, all others as alternating turns."""
        written: list[Any] = []
        others: list[Message] = []
        for message in messages:
            if not is_clients(message):
                others += [message] if message.parts else []
                continue
            written += self._turns(others, blocks)
            others = []
            if is_own(message.raw):
                written.append(message.raw.value)
            elif message.parts:
                content = blocks.blocks(message.parts)
                rest = members_for(NAME, message.extras)
                written.append({"role": message.role, "content": content, **rest})
        return written + self._turns(others, blocks)

    def _turns(self, messages: Sequence[Message], blocks: BlockWriter) -> list[Obj]:
        if not messages:
            return []
        found = turns(messages, self._notices)
        _put_answers_next_to_calls(found, self._notices)
        if not self._own and found and found[-1].role == "assistant":
            note_prefill(self._request.messages, self._notices)
            _strip_end(found[-1])
            if self._target.takes.prefill is False and begins_answer(found):
                found.append(MergedTurn("user", [Text(PLACEHOLDER)]))
        return [{"role": turn.role, "content": blocks.blocks(turn.parts)} for turn in found]


def _beginning_with_user(written: list[Obj], notices: Notices) -> list[Obj]:
    """Add a user message at the beginning if there is none: Anthropic refuses such a conversation."""
    first = next((m["role"] for m in written if m["role"] != "system"), None)
    if first == "user":
        return written
    note_placeholder(notices)
    return [{"role": "user", "content": [{"type": "text", "text": PLACEHOLDER}]}, *written]


def _leading(messages: Sequence[Message]) -> int:
    """How many messages become the `system` field."""
    # Newer Claude Code also sends messages of the role `system` inside `messages`. They stay there, because
    # a message that moves to the top would change the prefix of the prompt cache in every turn.
    for count, message in enumerate(messages):
        in_place = is_clients(message) and (message.raw is None or message.raw.at is not None)
        if message.role not in ("system", "developer") or in_place:
            return count
    return len(messages)


def _system(
    messages: Sequence[Message], blocks: BlockWriter, instruction: str | None
) -> list[Obj] | msgspec.Raw:
    if len(messages) == 1 and is_own(messages[0].raw) and not instruction:
        return messages[0].raw.value["system"]
    written: list[Obj] = []
    for message in messages:
        if message.raw is None:
            written += blocks.blocks(message.parts)
        else:
            given = msgspec.json.decode(message.raw.value["system"])
            written += given if is_array(given) else [{"type": "text", "text": given}]
    if instruction:
        written.append({"type": "text", "text": instruction})
    return written


def _shortest(system: list[Obj] | msgspec.Raw) -> str | list[Obj] | msgspec.Raw | None:
    """A system prompt that is one text without members as a string, as most clients write it."""
    if isinstance(system, list) and len(system) == 1 and system[0].keys() == {"type", "text"}:
        return system[0]["text"]
    return system or None


def _with_copied_beginning(written: list[Any], messages: Sequence[Message]) -> list[Any] | msgspec.Raw:
    """`written`, with the client's white space between the first messages, as far as they are unchanged.

    An earlier request may have been copied as a whole: the bytes of the prompt must stay the same.
    """
    listed = messages[0].raw.held if messages and messages[0].raw is not None else None
    if not isinstance(listed, LazyArray):
        return written
    json, end, count = bytes(listed.json), 0, 0
    for message in messages:
        if message.raw is None or message.raw.held is not listed or message.raw.at != count:
            break
        item = memoryview(listed[count])
        end = json.index(item, end) + len(item)
        count += 1
    rest = msgspec.json.encode(written[count:])
    return msgspec.Raw(json[:end] + (b"," if len(rest) > 2 else b"") + rest[1:])


def _put_answers_next_to_calls(found: list[MergedTurn], notices: Notices) -> None:
    """Move a system message from between calls and their results to behind the results.

    Anthropic requires that the message after a call begins with its result.
    """
    for index in range(len(found) - 2):
        calling, between, answering = found[index : index + 3]
        if between.role != "system" or answering.role != "user":
            continue
        if has_calls(calling):
            message = "a system message between calls and their results stands after these"
            notices.warn("system-moved", "messages", message)
            found[index + 1], found[index + 2] = answering, between


def _strip_end(turn: MergedTurn) -> None:
    """Remove white space at the end of a prefill: Anthropic refuses a final assistant text that has some."""
    last = turn.parts[-1]
    if isinstance(last, Text):
        turn.parts[-1] = msgspec.structs.replace(last, text=last.text.rstrip())


# Cache marks for clients that set none: Anthropic caches only what is marked.
#
# A mark after a block stores the prompt up to there, and a later request reads it if it has a mark at the
# same place, or within twenty blocks behind it. Four marks are allowed:
#
# - after the tools and after the system prompt, which are the same in every turn;
# - after the last turn of the user, so that the next request can read all of this one;
# - after the user's turn before it, where the request before this one had its last mark. An answer may add
#   more than twenty blocks, so the distance alone does not find it.
#
# A request is written the same way each time, so only the marks move from turn to turn.


def _mark_prompt(tools: Any, system: Any, messages: list[Any], notices: Notices) -> None:
    """Add up to four marks to the prompt."""
    turns = [at for at, turn in enumerate(messages) if turn["role"] == "user" and is_array(turn["content"])]
    last = turns[-_MARKED_TURNS:]
    places = [("tools", tools), ("system", system)]
    places += [(f"messages[{at}]", messages[at]["content"]) for at in last]
    marked = [(name, blocks) for name, blocks in places if blocks]
    for _, blocks in marked:
        # A copy: a tool may be one that other requests share.
        blocks[-1] = {**blocks[-1], "cache_control": cache_control(Cache())}
    cache_breakpoints.note_added(f"marks after {', '.join(name for name, _ in marked)}", notices)
