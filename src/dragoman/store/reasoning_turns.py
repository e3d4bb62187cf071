"""One turn's reasoning without its words and calls, and how to put it back where it stood."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..model.messages import Part, Seal, Text, Thinking, ToolCall


class Turn(msgspec.Struct, frozen=True, array_like=True):
    """What a client without a place for reasoning loses of one answer."""

    pieces: tuple[Thinking | int | str, ...]
    """The answer's parts in order: reasoning as it is, so many characters of text, the id of a call."""
    seals: dict[str, Seal]
    """Of calls, by id."""


def turn_of(parts: Sequence[Part], *, words: bool) -> Turn | None:
    """None if nothing is lost. Reasoning without a seal counts only where `words` are wanted back."""
    seals = {p.id: p.seal for p in parts if isinstance(p, ToolCall) and p.seal is not None}
    thoughts = [part for part in parts if isinstance(part, Thinking)]
    if not seals and not any(thought.seal is not None or (words and thought.text) for thought in thoughts):
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
    return Turn(tuple(pieces), seals)


def carries(parts: Sequence[Part], turn: Turn) -> bool:
    """Did the client bring all of it back itself? A signature is over the very words it came with."""
    thoughts = [part for part in parts if isinstance(part, Thinking)]
    given = {(t.seal.data, t.text) for t in thoughts if t.seal is not None}
    data = {seal for seal, _ in given}
    calls = {p.id: p.seal.data for p in parts if isinstance(p, ToolCall) and p.seal is not None}
    lost = [piece for piece in turn.pieces if isinstance(piece, Thinking)]
    for piece in lost:
        if piece.seal is None:
            continue
        if piece.seal.data not in data or (piece.text and (piece.seal.data, piece.text) not in given):
            return False
    if any(calls.get(id) != seal.data for id, seal in turn.seals.items()):
        return False
    sealed = bool(turn.seals) or any(piece.seal is not None for piece in lost)
    return sealed or "".join(t.text for t in thoughts) == "".join(piece.text for piece in lost)


def with_turn(parts: Sequence[Part], turn: Turn) -> tuple[Part, ...]:
    """The client's `parts`, with the reasoning of `turn` in its place and none of their own."""
    rest = _Rest(parts, turn)
    result: list[Part] = []
    for piece in turn.pieces:
        if isinstance(piece, Thinking):
            result.append(piece)
        elif isinstance(piece, int):
            result += rest.words(piece)
        else:
            result += rest.call(piece)
    return (*result, *rest.everything())


class _Rest:
    """What of the client's parts has not found its place yet."""

    def __init__(self, parts: Sequence[Part], turn: Turn) -> None:
        self._seals = turn.seals
        self._texts = [part for part in parts if isinstance(part, Text)]
        self._calls = {part.id: part for part in parts if isinstance(part, ToolCall)}
        self._others = [p for p in parts if not isinstance(p, (Text, Thinking, ToolCall))]
        lengths = [piece for piece in turn.pieces if isinstance(piece, int)]
        plain = len(self._texts) == 1 and not self._texts[0].citations and self._texts[0].cache is None
        # Chat joins all words; they are cut again where thoughts stood between, if nobody changed them.
        self._cut = plain and len(lengths) > 1 and sum(lengths) == len(self._texts[0].text)

    def words(self, length: int) -> list[Part]:
        if not self._cut:
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
        # Calls stand behind everything else that was said, unless it is known better.
        said = [] if self._cut else self.words(0)
        others, self._others = self._others, []
        return [*said, *others, call if seal is None else msgspec.structs.replace(call, seal=seal, raw=None)]

    def everything(self) -> list[Part]:
        texts = [text for text in self._texts if text.text]
        return [*texts, *self._others, *self._calls.values()]
