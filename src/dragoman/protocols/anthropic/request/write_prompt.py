"""What the model reads: tools, system prompt and conversation, made in that order."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ....messages import Message, Notice, Request, Text, ToolCall, leading_system
from ... import breakpoints
from ...base import Target
from ...fields import Obj, is_array
from ...history import History
from ...ids import IdRule
from ...memory import MEMORY
from ...names import ToolNames
from ...notices import Notices
from ...pieces import Whole
from ...stretches import Beginning, Stretches, listed
from ...turns import Turn, note_prefill, turns
from .carry import Carry, is_own
from .restore import restored
from .write_blocks import BlockWriter, CallIds, Marks
from .write_tools import ToolWriter

_PLACEHOLDER = "Continue."
_STRETCHES = Stretches("written for Anthropic", CallIds.copied)

_encode = msgspec.json.Encoder().encode


class Prompt(msgspec.Struct, frozen=True):
    """The pieces of a body that hold the prompt."""

    system: str | list[Obj] | None
    messages: list[Obj] | Whole
    late: list[Obj]
    """The last of them, with what the model said last."""
    tools: list[Obj]
    callable: bool
    """May the tools be called? Otherwise they are there only because the history has calls."""
    json: msgspec.Raw | None = None
    """The tools once more, where they are written already."""


class PromptWriter:
    """Writes the prompt of one request.

    `own`: the client speaks Anthropic, so that most of its messages and tools go out as they are.
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
        """`instruction` is said after everything else in the system prompt."""
        history = self._request.messages
        if type(history) is History and not (self._own or self._is_picky(history)):
            return self._gone_on(history, rule, instruction)
        messages = self._carried(0, len(history), self._notices)
        marks = Marks(
            0 if self._own else breakpoints.count_marks(messages) + self._marks_on_tools(), self._notices
        )
        writer = ToolWriter(self._request, self._names, marks, self._notices)
        tools = writer.offered()
        blocks = BlockWriter(self._names, CallIds(rule), marks, self._notices, own=self._own)
        leading = _leading(messages)
        system = _system(messages[:leading], blocks, instruction)
        written = self._conversation(messages[leading:], blocks, self._notices, self._notices)
        if not self._own:
            written = self._complete(written, self._notices)
        return Prompt(system, written, written, tools or writer.remembered(), bool(tools))

    def _gone_on(self, history: History, rule: IdRule, instruction: str | None) -> Prompt:
        """A conversation of which perhaps something was written before, with all the marks that are on it."""
        leading = leading_system(history)
        # What is said of all parts comes before what is said of all turns, and so on.
        notices = of_parts, of_turns, of_order, of_blocks, of_all = [Notices(strict=False) for _ in range(5)]
        marks = Marks(0, self._notices)
        said = self._carried(0, leading, of_parts)

        def blocks(ids: CallIds) -> BlockWriter:
            return BlockWriter(self._names, ids, marks, of_blocks, own=False)

        def write(start: int, stop: int, ids: CallIds) -> list[Obj]:
            carried = self._carried(start, stop, of_parts)
            written = self._conversation(carried, blocks(ids), of_turns, of_order)
            return self._complete(written, of_all) if start == leading else written

        target = self._target
        key = (target.issuer, target.ids, self._names.number, leading)
        begun = Beginning(leading, [], (), CallIds(rule))
        system = _system(said, blocks(begun.state), instruction)
        settled, late = _STRETCHES.write(history, key, begun, notices, write)
        messages = listed(settled, late)
        self._notices.again(of_parts.all())
        writer = ToolWriter(self._request, self._names, marks, self._notices)
        tools, json = self._noted_tools(writer)
        for said_later in notices[1:]:
            self._notices.again(said_later.all())
        return Prompt(system, messages, late, tools or writer.remembered(), bool(tools), json)

    def _noted_tools(self, writer: ToolWriter) -> tuple[list[Obj], msgspec.Raw | None]:
        """The tools the model may call, and the same as JSON, where they were written before."""
        request, notices = self._request, self._notices
        known = MEMORY.known(request.raw.value.get("tools")) if request.raw is not None else None
        if known is None:
            return writer.offered(), None

        def written() -> tuple[tuple[list[Obj], msgspec.Raw | None, tuple[Notice, ...]], bool]:
            said = len(notices)
            tools = writer.offered()
            return (tools, msgspec.Raw(_encode(tools)) if tools else None, notices.since(said)), True

        key = (self._names.number, request.tools, request.settings.tool_choice)
        tools, json, said = known.note("tools for Anthropic", key, written)
        notices.again(said)
        return tools, json

    def _carried(self, start: int, stop: int, notices: Notices) -> list[Message]:
        carry, messages = Carry(self._target, notices), self._request.messages
        found = ((index, messages[index]) for index in range(start, stop))
        return [m if is_own(m.raw) else carry.message(m, index) for index, m in found]

    def _is_picky(self, history: History) -> bool:
        """Must all of it be at hand: to refuse the first thing that is wrong with it, or because there may be
        more marks than are allowed, so that some have to go?"""
        marks = breakpoints.marks_on(history) + self._marks_on_tools()
        return self._target.strict or marks > breakpoints.MOST

    def _marks_on_tools(self) -> int:
        return sum(tool.cache is not None for tool in self._request.tools)

    def _conversation(
        self, messages: Sequence[Message], blocks: BlockWriter, of_turns: Notices, of_order: Notices
    ) -> list[Obj]:
        """The client's own messages as they are, everything else as alternating turns."""
        written: list[Obj] = []
        changed: list[Message] = []
        for message in messages:
            if message.raw is None:
                changed += [message] if message.parts else []
                continue
            written += self._turns(changed, blocks, of_turns, of_order)
            changed = []
            kept = restored(message.raw.value, self._target)
            written += [] if kept is None else [kept]
        return written + self._turns(changed, blocks, of_turns, of_order)

    def _turns(
        self, messages: Sequence[Message], blocks: BlockWriter, of_turns: Notices, of_order: Notices
    ) -> list[Obj]:
        found = turns(messages, of_turns)
        _put_answers_next_to_calls(found, of_order)
        if not self._own and found and found[-1].role == "assistant":
            note_prefill(self._request.messages, of_order)
            _strip_end(found[-1])
        return [{"role": turn.role, "content": blocks.blocks(turn.parts)} for turn in found]

    def _complete(self, written: list[Obj], notices: Notices) -> list[Obj]:
        """A conversation must begin with the user."""
        first = next((m["role"] for m in written if m["role"] != "system"), None)
        if first == "user":
            return written
        notices.say("placeholder-added", "messages", "a user must speak first")
        return [{"role": "user", "content": [{"type": "text", "text": _PLACEHOLDER}]}, *written]


def _leading(messages: Sequence[Message]) -> int:
    """How many messages make up `system`: an Anthropic client's own may also stand in place."""
    for count, message in enumerate(messages):
        in_place = message.raw is not None and "system" not in message.raw.value
        if message.role != "system" or in_place:
            return count
    return len(messages)


def _system(
    messages: Sequence[Message], blocks: BlockWriter, instruction: str | None
) -> str | list[Obj] | None:
    written: list[Obj] = []
    for message in messages:
        if message.raw is None:
            written += blocks.blocks(message.parts)
        else:
            given = message.raw.value["system"]
            written += given if is_array(given) else [{"type": "text", "text": given}]
    if instruction:
        written.append({"type": "text", "text": instruction})
    if len(written) == 1 and written[0].keys() == {"type", "text"}:
        return written[0]["text"]
    return written or None


def _put_answers_next_to_calls(found: list[Turn], notices: Notices) -> None:
    """Nothing may stand between calls and their results: a system message there comes later."""
    for index in range(len(found) - 2):
        calling, between, answering = found[index : index + 3]
        calls = any(isinstance(part, ToolCall) for part in calling.parts)
        if calls and between.role == "system" and answering.role == "user":
            message = "a system message between calls and their results stands after these"
            notices.say("system-moved", "messages", message)
            found[index + 1], found[index + 2] = answering, between


def _strip_end(turn: Turn) -> None:
    """Words to be continued may not end in white space."""
    last = turn.parts[-1]
    if isinstance(last, Text):
        turn.parts[-1] = msgspec.structs.replace(last, text=last.text.rstrip())
