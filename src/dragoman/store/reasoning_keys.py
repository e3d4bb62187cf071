"""Store keys for the reasoning of a conversation.

A key is a hash over the issuer and what the model said, not only the call id: some upstreams restart their
call ids in every conversation, and reasoning must not move between conversations.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ..model.messages import Message, Part, Seal, Text, Thinking, ToolCall, ToolResult
from ..protocols.facts import ReasoningReplay
from ..protocols.registry import client_protocol
from ..tools.loop_detection import canonical
from .types import ALIASES, ISSUERS, TURNS, EntryKey

HASHED = "dgmh-"
"""The prefix of a call id that `protocols/common/call_ids.py` hashed. Only the store knows the original."""


class ReasoningContext(msgspec.Struct, frozen=True, kw_only=True):
    """The client and the upstream between which reasoning is carried."""

    client: str
    """The client's protocol."""
    issuer: str
    """The upstream's name, as in `Target.issuer`."""
    scope: str = ""
    """Identifies the client if several share the gateway: clients never get each other's reasoning."""
    wants_unsealed: bool = False
    """The upstream wants its unsealed reasoning back too (`Target.reasoning_field`)."""
    same_protocol: bool = False
    """Does the upstream speak the client's protocol?"""
    client_asked: bool = True
    """Did the client ask for reasoning? If not, it may send none back."""
    track_issuers: bool = True
    """Store the issuer of each seal. Not needed if only one upstream speaks the client's protocol."""

    @property
    def sent_back(self) -> ReasoningReplay:
        """What clients of this protocol send back of an answer's reasoning."""
        return client_protocol(self.client).reasoning

    @property
    def stores_turns(self) -> bool:
        """Must the gateway store the reasoning because the client does not send it back?"""
        if self.sent_back.seals and self.same_protocol:
            return False
        return not self.sent_back.thoughts or not self.client_asked

    @property
    def needs_issuers(self) -> bool:
        """Does the issuer of an unnamed seal matter? Upstreams of other protocols never get such a seal."""
        return self.track_issuers and self.same_protocol


class Lookups(msgspec.Struct, frozen=True):
    """The keys to look up for a request, by the index of the message."""

    turns: dict[int, EntryKey]
    issuers: dict[int, list[EntryKey]]
    aliases: dict[int, dict[str, EntryKey]]
    """By the hashed id."""

    def keys(self) -> list[EntryKey]:
        if not (self.turns or self.issuers or self.aliases):
            return []
        unnamed = (key for keys in self.issuers.values() for key in keys)
        hashed = (key for keys in self.aliases.values() for key in keys.values())
        return list(dict.fromkeys((*self.turns.values(), *unnamed, *hashed)))

    def found(self, values: Mapping[EntryKey, bytes]) -> FoundReasoning:
        """Sort the values that the store returned."""
        turns = {at: values[key] for at, key in self.turns.items() if key in values}
        issuers = {
            at: {values[key].decode() for key in keys if key in values} for at, keys in self.issuers.items()
        }
        aliases = {
            at: {
                id: values[key].decode("utf-8", "surrogatepass") for id, key in keys.items() if key in values
            }
            for at, keys in self.aliases.items()
        }
        return FoundReasoning(turns, issuers, aliases)


class FoundReasoning(msgspec.Struct, frozen=True):
    """What the store has for a request, by the index of the message."""

    turns: dict[int, bytes]
    issuers: dict[int, set[str]]
    aliases: dict[int, dict[str, str]]


def lookups(messages: Sequence[Message], context: ReasoningContext, *, turns: bool | None = None) -> Lookups:
    """The keys to look up for these messages. `turns`: look for stored turns too."""
    turns = context.stores_turns if turns is None else turns
    aliases = {at: {id: alias_key(id, context) for id in ids} for at, ids in hashed_ids(messages).items()}
    wanted = Lookups({}, {}, aliases)
    if not (turns or context.needs_issuers):
        return wanted
    for index, message in enumerate(messages):
        if message.role != "assistant":
            continue
        position = TurnPosition(messages, index)
        if turns:
            wanted.turns[index] = turn_key(position, message.parts, context)
        if context.needs_issuers and any(not seal.issuer for seal in seals(message.parts)):
            wanted.issuers[index] = issuer_keys(position, message.parts, context)
    return wanted


def hashed_ids(messages: Sequence[Message]) -> dict[int, list[str]]:
    """The hashed call ids, by the index of the message."""
    found: dict[int, list[str]] = {}
    for index, message in enumerate(messages):
        for part in message.parts:
            # Not `isinstance`, which is several times slower: this runs for every part of every request.
            if type(part) is ToolCall:
                id = part.id
            elif type(part) is ToolResult:
                id = part.call_id
            else:
                continue
            if id.startswith(HASHED):
                found.setdefault(index, []).append(id)
    return found


def seals(parts: Iterable[Part]) -> list[Seal]:
    sealed = (part for part in parts if isinstance(part, (Thinking, ToolCall)))
    return [part.seal for part in sealed if part.seal is not None]


def alias_key(id: str, context: ReasoningContext) -> EntryKey:
    return EntryKey(ALIASES, _digest(context.scope, context.issuer, id))


class TurnPosition(msgspec.Struct, frozen=True):
    """The position of a model's turn: it answers the messages before `index`."""

    messages: Sequence[Message]
    index: int

    def question(self) -> list[str]:
        """The user's messages since the model's last turn. Many questions have the same short answer."""
        texts: list[str] = []
        for index in range(self.index - 1, -1, -1):
            message = self.messages[index]
            if message.role == "assistant":
                break
            if message.role == "user":
                texts += [_summary(part) for part in message.parts]
        return texts


def turn_key(position: TurnPosition, parts: Sequence[Part], context: ReasoningContext) -> EntryKey:
    return EntryKey(TURNS, _digest(context.scope, context.issuer, *_identity(position, parts, context)))


def issuer_keys(position: TurnPosition, parts: Sequence[Part], context: ReasoningContext) -> list[EntryKey]:
    """Keys for the issuers of a turn's unnamed seals.

    The key is the seal itself, unless the client rebuilds seals, as OpenAI's Chat SDK does with lists.
    """
    if not context.sent_back.seals:
        return [EntryKey(ISSUERS, _digest(context.scope, *_identity(position, parts, context)))]
    return [
        EntryKey(ISSUERS, _digest(context.scope, seal.protocol, seal.data or seal.id or ""))
        for seal in seals(parts)
    ]


def _identity(position: TurnPosition, parts: Sequence[Part], context: ReasoningContext) -> list[str]:
    """What identifies a turn: its first call, or its text and the question before it."""
    call = next((part for part in parts if isinstance(part, ToolCall)), None)
    if call is not None:
        arguments = call.arguments if call.kind == "custom" else canonical(call.arguments or "{}")
        identifying = [call.id] if context.sent_back.call_ids else position.question()
        return ["call", *identifying, call.name, arguments]
    text = "".join(part.text for part in parts if isinstance(part, Text))
    return ["words", text.strip(), *position.question()]


def _summary(part: Part) -> str:
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
