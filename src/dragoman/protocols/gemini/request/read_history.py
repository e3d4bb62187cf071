"""A Gemini client's conversation; of one that goes on, what was known before is not read again.

Ids may have to be given to calls, and to responses those of the calls they answer (`pairing`): a plain
message that came without them is made a neutral one at once, since its JSON alone does not tell them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ....messages import Message, ToolCall, ToolResult
from ... import ids, recall
from ...conversations import Cut
from ...fields import as_object
from ...history import History, decoded
from ...plain import Plain
from ...turns import Pairing
from .keys import GEMINI
from .pairing import Calls, Paired, given_ids, with_ids
from .read_parts import read_content
from .read_plain import SignedCall, read_list

_NOTE = "calls and responses, paired"

_items = msgspec.json.Decoder(list[msgspec.Raw]).decode

Item = Callable[[int], bytes | msgspec.Raw]
"""The JSON of the content at a place."""


def read_history(cut: Cut, leading: tuple[Message, ...]) -> History:
    """The conversation of a request. Raises ValueError, BadRequest, … for what is wrong with it."""
    history, contents, paired = _begun(cut, leading)
    start = len(history) - len(leading)
    new = _Reading(history.item, start, contents, history.calls, paired)
    history.thoughts.update(new.thoughts)
    history.add(new.plain, new.unusual, new.made)
    history.note(_NOTE, None, new.paired)
    return history


def _begun(cut: Cut, leading: tuple[Message, ...]) -> tuple[History, Sequence[Plain | None], Paired]:
    """What is known of it, the rest as it is read, and how far it is paired."""
    before = cut.before.history if cut.before is not None else None
    if before is not None and cut.count == len(before) - len(before.leading):
        history = before.begun(cut.count, cut.listed, leading)
        return history, cut.messages, history.noted(_NOTE, None)[1]
    # How far the beginning of another one is paired is not known.
    contents = cut.messages if before is None else read_list(b"".join(cut.listed.json().pieces))
    return History(GEMINI, _read, _read_all, cut.listed, leading), contents, Paired()


def _read_all(data: bytes) -> list[Plain | None]:
    items = _items(data)
    return _Reading(items.__getitem__, 0, read_list(data), {}, Paired()).plain


class _Reading:
    """Some contents behind those that are paired, with their ids."""

    def __init__(
        self, item: Item, start: int, contents: Sequence[Plain | None], known: dict[str, int], paired: Paired
    ) -> None:
        self._item = item
        self.plain: list[Plain | None] = []
        self.unusual = {at: self._content(at) for at, one in enumerate(contents, start) if one is None}
        self.made: dict[int, Message] = {}
        """Those of the plain ones that came without their ids."""
        self.thoughts: dict[int, bool] = {}
        """Those that hold thoughts, or signatures."""
        given = {id for message in self.unusual.values() for id in given_ids(message)}
        given |= {part.id for content in contents if content for part in _calls(content)}
        if paired.minted and not known.keys().isdisjoint(given):
            raise recall.FieldByField  # perhaps with the very id that another call was given
        self._calls = Calls(Pairing(known), given, paired)
        for at, content in enumerate(contents, start):
            self._add(content, at)

    @property
    def paired(self) -> Paired:
        return self._calls.paired

    def _content(self, at: int) -> Message:
        return _read(self._item(at), at)

    def _add(self, content: Plain | None, at: int) -> None:
        if content is None:
            self.unusual[at] = with_ids(self.unusual[at], at, self._calls, _nowhere)
            self.plain.append(None)
            return
        given: Any = content.content
        self._calls.message(by_model=content.kind == "said")
        parts = [self._part(part, at) for part in given]
        if any(new is not old for new, old in zip(parts, given, strict=True)):
            content = self._with_ids(content, parts, at)
        self.plain.append(content)

    def _with_ids(self, content: Plain, parts: list[Any], at: int) -> Plain | None:
        message = _with_ids_of(parts, self._content(at))
        if any(part.kind == "result" and part.call_id.startswith(ids.OURS) for part in parts):
            self.unusual[at] = message
            return None
        self.made[at] = message
        return msgspec.structs.replace(content, content=parts)

    def _part(self, part: Any, at: int) -> Any:
        """The same part, with its id."""
        if part.kind == "call":
            id = self._calls.call(part.id, part.name, at)
            if part.__class__ is SignedCall:
                self.thoughts[at] = True
            return part if id == part.id else msgspec.structs.replace(part, id=id)
        if part.kind == "result":
            id, _ = self._calls.result(part.call_id, part.name, _no_path)
            return part if id == part.call_id else msgspec.structs.replace(part, call_id=id)
        if part.kind == "thoughts":
            self.thoughts[at] = True
        return part


def _calls(content: Plain) -> list[Any]:
    parts: Any = content.content
    return [part for part in parts if part.kind == "call"] if content.kind == "said" else []


def _with_ids_of(parts: Sequence[Any], message: Message) -> Message:
    """The same message with the ids of these parts, which are its calls and responses among others."""
    found = iter([part.id if part.kind == "call" else part.call_id for part in parts if _is_paired(part)])
    replaced = msgspec.structs.replace
    return replaced(
        message,
        parts=tuple(
            [
                replaced(part, id=next(found))
                if isinstance(part, ToolCall)
                else replaced(part, call_id=next(found))
                if isinstance(part, ToolResult)
                else part
                for part in message.parts
            ]
        ),
    )


def _is_paired(part: Any) -> bool:
    return part.kind in ("call", "result")


def _read(item: bytes | msgspec.Raw, at: int) -> Message:
    where = f"contents[{at}]"
    return read_content(as_object(decoded(item, at), where), where)


def _nowhere(content: int, response: int) -> str:
    return ""


def _no_path() -> str:
    """Complaints are made by who reads field by field."""
    return ""
