"""The reasoning of one turn, without its text and calls, and how to put it back in the same position."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..model.messages import Part, Seal, Text, Thinking, ToolCall, thinking_text


class StoredTurn(msgspec.Struct, frozen=True, array_like=True):
    """The parts of an answer that are lost in a client whose protocol has no field for reasoning."""

    pieces: tuple[Thinking | int | str, ...]
    """The parts in order: reasoning itself, for text its length, for a call its id."""
    seals: dict[str, Seal]
    """Seals of calls, by call id."""


def turn_of(parts: Sequence[Part], *, unsealed: bool) -> StoredTurn | None:
    """The turn to store; None if nothing is lost. `unsealed`: also store reasoning without a seal."""
    seals = {p.id: p.seal for p in parts if isinstance(p, ToolCall) and p.seal is not None}
    thoughts = [part for part in parts if isinstance(part, Thinking)]
    if not seals and not any(thought.seal is not None or (unsealed and thought.text) for thought in thoughts):
        return None
    pieces: list[Thinking | int | str] = []
    for part in parts:
        match part:
            case Thinking():
                pieces.append(msgspec.structs.replace(part, extras=None))
            case Text(text):
                pieces.append(len(text))
            case ToolCall(id=id):
                pieces.append(id)
            case _:
                pass
    return StoredTurn(tuple(pieces), seals)


def carries(parts: Sequence[Part], turn: StoredTurn) -> bool:
    """Did the client send all reasoning of `turn` back itself?

    The text must be equal too: a signature covers the text that it came with.
    """
    thoughts = [part for part in parts if isinstance(part, Thinking)]
    sent = {(t.seal.data, t.text) for t in thoughts if t.seal is not None}
    sent_seals = {seal for seal, _ in sent}
    calls = {p.id: p.seal.data for p in parts if isinstance(p, ToolCall) and p.seal is not None}
    stored = [piece for piece in turn.pieces if isinstance(piece, Thinking)]
    for piece in stored:
        if piece.seal is None:
            continue
        if piece.seal.data not in sent_seals or (piece.text and (piece.seal.data, piece.text) not in sent):
            return False
    if any(calls.get(id) != seal.data for id, seal in turn.seals.items()):
        return False
    sealed = bool(turn.seals) or any(piece.seal is not None for piece in stored)
    return sealed or thinking_text(thoughts) == thinking_text(stored)


def with_turn(parts: Sequence[Part], turn: StoredTurn) -> tuple[Part, ...]:
    """The client's `parts` with the reasoning of `turn` in its position, instead of any that they have."""
    remaining = _Remaining(parts, turn)
    result: list[Part] = []
    for piece in turn.pieces:
        if isinstance(piece, Thinking):
            result.append(piece)
        elif isinstance(piece, int):
            result += remaining.text(piece)
        else:
            result += remaining.call(piece)
    return (*result, *remaining.all())


class _Remaining:
    """The client's parts that are not placed yet."""

    def __init__(self, parts: Sequence[Part], turn: StoredTurn) -> None:
        self._seals = turn.seals
        self._texts = [part for part in parts if isinstance(part, Text)]
        self._calls = {part.id: part for part in parts if isinstance(part, ToolCall)}
        self._others = [p for p in parts if not isinstance(p, (Text, Thinking, ToolCall))]
        lengths = [piece for piece in turn.pieces if isinstance(piece, int)]
        plain = len(self._texts) == 1 and not self._texts[0].citations and self._texts[0].cache is None
        # Chat joins all text of an answer. If its length is the same, split it again where reasoning was.
        self._split = plain and len(lengths) > 1 and sum(lengths) == len(self._texts[0].text)

    def text(self, length: int) -> list[Part]:
        if not self._split:
            texts, self._texts = self._texts, []
            return [*texts]
        text = self._texts[0].text
        self._texts = [Text(text[length:])]
        return [Text(text[:length])] if length else []

    def call(self, id: str) -> list[Part]:
        call = self._calls.pop(id, None)
        if call is None:
            return []
        seal = self._seals.get(id)
        # Unless the positions are known, calls come after all text.
        texts = [] if self._split else self.text(0)
        others, self._others = self._others, []
        return [*texts, *others, call if seal is None else msgspec.structs.replace(call, seal=seal, raw=None)]

    def all(self) -> list[Part]:
        texts = [text for text in self._texts if text.text]
        return [*texts, *self._others, *self._calls.values()]
