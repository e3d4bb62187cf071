"""Under which keys a store may know something of a conversation, and what it does know.

Keys hold the issuer and what the model said, not just the call's id: some upstreams number their calls
anew in every conversation, and one conversation's thoughts have no business in another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec

from ..messages import Message, Part, Seal, Text, Thinking, ToolCall, ToolResult
from ..protocols.facts import Reasoning
from ..protocols.history import History
from ..protocols.memory import MEMORY
from ..protocols.plain import Plain, Said, called_with
from ..protocols.registry import client_protocol
from ..tools.loops import canonical
from .types import ALIASES, ISSUERS, TURNS, Key

T = TypeVar("T")

HASHED = "dgmh-"
"""How `protocols.ids` begins an id that cannot be undone without memory."""


class Carriage(msgspec.Struct, frozen=True, kw_only=True):
    """Between whom reasoning is carried."""

    client: str
    """The client's protocol."""
    issuer: str
    """The upstream's name, as in `Target.issuer`."""
    scope: str = ""
    """Who the client is, where several share the gateway: nobody gets anybody else's reasoning."""
    words: bool = False
    """This upstream wants its unsealed reasoning back too (`Target.reasoning_field`)."""
    same: bool = False
    """Does the upstream speak the client's protocol?"""
    asked: bool = True
    """Did the client ask for the reasoning that it has a place for? Else it may send none back."""
    named: bool = True
    """Keep who made which seal. Needless where only one upstream speaks the client's protocol."""

    @property
    def sent_back(self) -> Reasoning:
        """What clients of this protocol send back of an answer."""
        return client_protocol(self.client).reasoning

    @property
    def stashes(self) -> bool:
        """Must the reasoning be kept for the client?"""
        if self.sent_back.seals and self.same:
            return False
        return not self.sent_back.thoughts or not self.asked

    @property
    def wants_makers(self) -> bool:
        """Does it matter who made a seal without a name? No other protocol's upstream gets it in any case."""
        return self.named and self.same


class Lookups(msgspec.Struct, frozen=True):
    """Everything a store might know about some messages, by their index."""

    turns: dict[int, Key]
    issuers: dict[int, list[Key]]
    aliases: dict[int, dict[str, Key]]
    """By the hashed id."""

    def keys(self) -> list[Key]:
        if not (self.turns or self.issuers or self.aliases):
            return []
        unnamed = (key for keys in self.issuers.values() for key in keys)
        hashed = (key for keys in self.aliases.values() for key in keys.values())
        return list(dict.fromkeys((*self.turns.values(), *unnamed, *hashed)))


NOTHING_WANTED = Lookups({}, {}, {})


class Kept(msgspec.Struct, frozen=True):
    """What a store did know, by the index of the message."""

    turns: dict[int, bytes]
    makers: dict[int, set[str]]
    aliases: dict[int, dict[str, str]]

    def with_found(self, new: Lookups, found: Mapping[Key, bytes]) -> Kept:
        """This, and what was found for other messages."""
        if not found:
            return self
        turns = {at: found[key] for at, key in new.turns.items() if key in found}
        makers = {
            at: {found[key].decode() for key in keys if key in found} for at, keys in new.issuers.items()
        }
        aliases = {
            at: {id: found[key].decode("utf-8", "surrogatepass") for id, key in keys.items() if key in found}
            for at, keys in new.aliases.items()
        }
        return Kept(self.turns | turns, self.makers | makers, self.aliases | aliases)

    @property
    def is_empty(self) -> bool:
        return not (self.turns or self.makers or self.aliases)

    def before(self, index: int) -> Kept:
        """What it knows of the messages before that."""
        if self.is_empty:
            return self  # as nearly always
        return Kept(_until(self.turns, index), _until(self.makers, index), _until(self.aliases, index))


def _until(kept: dict[int, T], index: int) -> dict[int, T]:
    return {at: value for at, value in kept.items() if at < index}


def lookups(
    messages: Sequence[Message], carriage: Carriage, start: int = 0, *, turns: bool | None = None
) -> Lookups:
    """What to look up for a request of these messages, from the one at `start` on."""
    turns = carriage.stashes if turns is None else turns
    history = messages if type(messages) is History else None
    if history is not None and not turns and _has_nothing(history, carriage):
        return NOTHING_WANTED
    plains = [None] * (len(messages) - start) if history is None else _plains(history, start, carriage)
    if not turns and all(plains):
        return NOTHING_WANTED
    wanted = Lookups({}, {}, {})
    for index, plain in enumerate(plains, start):
        if plain is not None:
            if turns and plain.kind == "said":
                wanted.turns[index] = turn_key(Answered(messages, index), _spoken(plain), carriage)
            continue
        message = messages[index]
        if hashed := hashed_ids(message.parts):
            wanted.aliases[index] = {id: alias_key(id, carriage) for id in hashed}
        if message.role != "assistant":
            continue
        answered = Answered(messages, index)
        if turns:
            wanted.turns[index] = _key_of_turn(answered, message, carriage)
        if carriage.wants_makers and any(not seal.issuer for seal in seals(message.parts)):
            wanted.issuers[index] = issuer_keys(answered, message.parts, carriage)
    return wanted


def _has_nothing(history: History, carriage: Carriage) -> bool:
    """Have all of the messages neither seals that anybody wants nor ids of ours?"""
    if history.unusual() or (carriage.wants_makers and history.thoughts):
        return False
    return _are_told(history.leading)


def _plains(history: History, start: int, carriage: Carriage) -> Sequence[Plain | None]:
    """The messages from `start` on, None for those that have, or may have."""
    plains = history.plains(start)
    if not (carriage.wants_makers and history.thoughts):
        return plains
    leading = len(history.leading)
    return [None if at - leading in history.thoughts else plain for at, plain in enumerate(plains, start)]


def _are_told(leading: Sequence[Message]) -> bool:
    """Are these nothing but a system's words?"""
    return all(message.role == "system" for message in leading)


def _spoken(said: Said) -> list[Part]:
    """The parts of a plain message by which it is known, without the message."""
    return [
        ToolCall(id=part.id, name=part.name, arguments=called_with(part.input))
        if part.kind == "call"
        else Text(msgspec.json.decode(part.text))
        for part in said.content
        if part.kind != "thoughts"
    ]


def hashed_ids(parts: Iterable[Part]) -> list[str]:
    """The ids among `parts` that stand for longer ones."""
    found: list[str] = []
    for part in parts:
        # By the type itself: `isinstance` takes several times as long.
        if type(part) is ToolCall:
            id = part.id
        elif type(part) is ToolResult:
            id = part.call_id
        else:
            continue
        if id.startswith(HASHED):
            found.append(id)
    return found


def seals(parts: Iterable[Part]) -> list[Seal]:
    sealed = (part for part in parts if isinstance(part, (Thinking, ToolCall)))
    return [part.seal for part in sealed if part.seal is not None]


def alias_key(id: str, carriage: Carriage) -> Key:
    return Key(ALIASES, _digest(carriage.scope, carriage.issuer, id))


class Answered(msgspec.Struct, frozen=True):
    """Where in a conversation a turn of the model's stands: it answers what is before `index`."""

    messages: Sequence[Message]
    index: int

    def asked(self) -> list[str]:
        """What was said since the model spoke last: the same short answer is given to many questions."""
        said: list[str] = []
        for index in range(self.index - 1, -1, -1):
            message = self.messages[index]
            if message.role == "assistant":
                break
            if message.role == "user":
                said += [_gist(part) for part in message.parts]
        return said


def _key_of_turn(answered: Answered, message: Message, carriage: Carriage) -> Key:
    """The same for a turn of a history, which comes again with every request."""
    known = MEMORY.known(message.raw.value) if message.raw is not None else None
    alone = carriage.sent_back.call_ids and any(isinstance(p, ToolCall) for p in message.parts)
    if known is None or not alone:
        return turn_key(answered, message.parts, carriage)
    key = (carriage.client, carriage.scope, carriage.issuer)
    return known.note("turn", key, lambda: (turn_key(answered, message.parts, carriage), True))


def turn_key(answered: Answered, parts: Sequence[Part], carriage: Carriage) -> Key:
    return Key(TURNS, _digest(carriage.scope, carriage.issuer, *_name(answered, parts, carriage)))


def issuer_keys(answered: Answered, parts: Sequence[Part], carriage: Carriage) -> list[Key]:
    """Where it is kept who made the unnamed seals of a turn.

    By the seal itself, unless the client puts seals together anew, as Chat's SDK does with its lists.
    """
    if not carriage.sent_back.seals:
        return [Key(ISSUERS, _digest(carriage.scope, *_name(answered, parts, carriage)))]
    return [Key(ISSUERS, _digest(seal.protocol, seal.data or seal.id or "")) for seal in seals(parts)]


def _name(answered: Answered, parts: Sequence[Part], carriage: Carriage) -> list[str]:
    """A turn is known by its first call, or by its words and what they answer."""
    call = next((part for part in parts if isinstance(part, ToolCall)), None)
    if call is not None:
        arguments = call.arguments if call.kind == "custom" else _canonical(call.arguments)
        which = [call.id] if carriage.sent_back.call_ids else answered.asked()
        return ["call", *which, call.name, arguments]
    words = "".join(part.text for part in parts if isinstance(part, Text))
    return ["words", words.strip(), *answered.asked()]


def _canonical(arguments: str) -> str:
    """Arguments that say the same, as the same digest. Agents send all of them again on every turn."""
    raw = _digest(arguments)
    known = _canonical_digests.get(raw)
    if known is None:
        if len(_canonical_digests) >= _MOST_DIGESTS:
            _canonical_digests.clear()
        known = _canonical_digests[raw] = _digest(canonical(arguments or "{}"))
    return known


_MOST_DIGESTS = 20_000
_canonical_digests: dict[str, str] = {}


def _gist(part: Part) -> str:
    match part:
        case Text(text):
            return text.strip()
        case ToolResult(call_id=id):
            return id
        case _:
            return type(part).__name__


def _digest(*words: str) -> str:
    # Lengths keep ("ab", "c") and ("a", "bc") apart.
    text = "".join(f"{len(word)}:{word}" for word in words)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
