"""Write tools, system prompt and conversation, in the order in which Anthropic puts them into the prompt.

Cache marks and call ids depend on this order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ....model.messages import Message, Request, Text
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
from ..own import is_own
from .cache_marks import mark_prompt
from .restore import is_top_level_system, restored
from .supported import ContentFilter
from .write_blocks import BlockWriter, Marks
from .write_tools import ToolWriter


class Prompt(msgspec.Struct, frozen=True):
    """The fields of a body that make up the prompt."""

    system: str | list[Obj] | None
    messages: list[Any]
    tools: list[Obj]
    servers: list[Obj]
    """The MCP servers of these tools."""
    callable: bool
    """May the model call the tools? False: they are declared only because the history has calls."""


class PromptWriter:
    """Writes the prompt of one request.

    `own`: the client speaks Anthropic, so most of its messages and tools are sent unchanged.
    """

    def __init__(
        self, request: Request, target: Target, names: ToolNames, notices: Notices, *, own: bool
    ) -> None:
        self._request = request
        self._target = target
        self._names = names
        self._notices = notices
        self._own = own

    def write(self, rule: IdRule, instruction: str | None) -> Prompt:
        """Write the prompt. `instruction` goes to the end of the system prompt, to keep the cached prefix."""
        messages = self._carried()
        marks = Marks(
            0 if self._own else cache_breakpoints.count_marks(messages) + self._marks_on_tools(),
            self._notices,
            wanted=self._target.takes.caches is not False,
        )
        writer = ToolWriter(self._request, self._names, marks, self._notices)
        tools = writer.offered()
        blocks = BlockWriter(self._names, UniqueIds(rule), marks, self._notices, own=self._own)
        leading = _leading(messages)
        system = _system(messages[:leading], blocks, instruction)
        written = self._conversation(messages[leading:], blocks)
        if not self._own:
            written = self._complete(written)
            if self._target.marks_prompts and cache_breakpoints.marks_nothing(self._request):
                tools, system, written = mark_prompt(tools, system, written, self._notices)
        return Prompt(_shortest(system), written, tools or writer.remembered(), writer.servers, bool(tools))

    def _carried(self) -> list[Message]:
        content_filter = ContentFilter(self._target, self._notices)
        return [
            message if is_own(message.raw) else content_filter.message(message, index)
            for index, message in enumerate(self._request.messages)
        ]

    def _marks_on_tools(self) -> int:
        return sum(tool.cache is not None for tool in self._request.tools)

    def _conversation(self, messages: Sequence[Message], blocks: BlockWriter) -> list[Any]:
        """Write the messages of an Anthropic client unchanged, all others as alternating turns."""
        written: list[Any] = []
        changed: list[Message] = []
        for message in messages:
            if message.raw is None:
                changed += [message] if message.parts else []
                continue
            written += self._turns(changed, blocks)
            changed = []
            kept = restored(message.raw, self._target)
            written += [] if kept is None else [kept]
        return written + self._turns(changed, blocks)

    def _turns(self, messages: Sequence[Message], blocks: BlockWriter) -> list[Obj]:
        found = turns(messages, self._notices)
        _put_answers_next_to_calls(found, self._notices)
        if not self._own and found and found[-1].role == "assistant":
            note_prefill(self._request.messages, self._notices)
            _strip_end(found[-1])
            if self._target.takes.prefill is False and begins_answer(found):
                found.append(MergedTurn("user", [Text(PLACEHOLDER)]))
        return [{"role": turn.role, "content": blocks.blocks(turn.parts)} for turn in found]

    def _complete(self, written: list[Obj]) -> list[Obj]:
        """Add a user message at the beginning if there is none: Anthropic refuses such a conversation."""
        first = next((m["role"] for m in written if m["role"] != "system"), None)
        if first == "user":
            return written
        note_placeholder(self._notices)
        return [{"role": "user", "content": [{"type": "text", "text": PLACEHOLDER}]}, *written]


def _leading(messages: Sequence[Message]) -> int:
    """How many messages become the `system` field."""
    # Newer Claude Code also sends messages of the role `system` inside `messages`. They stay there, because
    # a message that moves to the top would change the prefix of the prompt cache in every turn.
    for count, message in enumerate(messages):
        in_place = message.raw is not None and not is_top_level_system(message)
        if message.role != "system" or in_place:
            return count
    return len(messages)


def _system(messages: Sequence[Message], blocks: BlockWriter, instruction: str | None) -> list[Obj]:
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


def _shortest(system: list[Obj]) -> str | list[Obj] | None:
    """A system prompt that is one text without members as a string, as most clients write it."""
    if len(system) == 1 and system[0].keys() == {"type", "text"}:
        return system[0]["text"]
    return system or None


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
