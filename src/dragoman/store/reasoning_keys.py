"""Under which keys a store may know something of a conversation, and what it does know.

Keys hold the issuer and what the model said, not just the call's id: some upstreams number their calls
anew in every conversation, and one conversation's thoughts have no business in another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ..model.messages import Message, Part, Seal, Text, Thinking, ToolCall, ToolResult
from ..protocols.facts import Reasoning
from ..protocols.registry import client_protocol
from ..tools.loop_detection import canonical
from .types import ALIASES, ISSUERS, TURNS, Key

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

    def kept(self, found: Mapping[Key, bytes]) -> Kept:
        """What was found of all this."""
        turns = {at: found[key] for at, key in self.turns.items() if key in found}
        makers = {
            at: {found[key].decode() for key in keys if key in found} for at, keys in self.issuers.items()
        }
        aliases = {
            at: {id: found[key].decode("utf-8", "surrogatepass") for id, key in keys.items() if key in found}
            for at, keys in self.aliases.items()
        }
        return Kept(turns, makers, aliases)


class Kept(msgspec.Struct, frozen=True):
    """What a store did know, by the index of the message."""

    turns: dict[int, bytes]
    makers: dict[int, set[str]]
    aliases: dict[int, dict[str, str]]


def lookups(messages: Sequence[Message], carriage: Carriage, *, turns: bool | None = None) -> Lookups:
    """What to look up for a request of these messages. `turns`: whether stashed turns are wanted."""
    turns = carriage.stashes if turns is None else turns
    wanted = Lookups({}, {}, {})
    for index, message in enumerate(messages):
        if hashed := hashed_ids(message.parts):
            wanted.aliases[index] = {id: alias_key(id, carriage) for id in hashed}
        if message.role != "assistant":
            continue
        answered = Answered(messages, index)
        if turns:
            wanted.turns[index] = turn_key(answered, message.parts, carriage)
        if carriage.wants_makers and any(not seal.issuer for seal in seals(message.parts)):
            wanted.issuers[index] = issuer_keys(answered, message.parts, carriage)
    return wanted


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
