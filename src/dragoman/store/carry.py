"""Opaque reasoning goes back to the upstream that made it, also through clients that have no place for it.

Anthropic and Responses clients send back what they asked for, and Gemini clients at least its signatures.
A Chat client sends back words and calls: what else an answer had (signed thoughts, signed calls, and where
they stood) is stashed here under its first call, or under its words where it called nothing, and put back
when that turn comes around again.

Three things are kept, each for its own reason:

- turns: the reasoning itself, for clients that cannot carry it;
- issuers: who made a seal that the client carries without a name on it (its own protocol's), so that
  another upstream of the same protocol does not get it;
- aliases: the upstream's own call id, where it was too long for the client.

Keys hold the issuer and what the model said, not just the call's id: some upstreams number their calls
anew in every conversation, and one conversation's thoughts have no business in another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ..messages import Message, Notice, Part, Request, Seal, Text, Thinking, ToolCall, ToolResult
from ..protocols import ids
from ..protocols.memory import MEMORY
from ..tools.loops import canonical
from ..tools.receipts import CallReceipt
from . import ALIASES, ISSUERS, TURNS, Entry, Key, Store, StoreError
from .turns import Turn, carries, turn_of, with_turn

_SEND_BACK_SEALS = frozenset({"anthropic", "openai-responses", "gemini"})
_SEND_BACK_THOUGHTS = frozenset({"anthropic", "openai-responses"})
"""Gemini needs none of its thoughts, and its CLI drops them: with them go the seals of other issuers."""
_SEND_BACK_NO_IDS = frozenset({"gemini"})
"""Many of their clients (opencode, pi, Google's SDK) leave the ids of calls out."""
_HASHED = "dgmh-"
"""How `protocols.ids` begins an id that cannot be undone without memory."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Turn).decode


def _asks_for_thinking(body: dict[str, Any]) -> bool:
    thinking: Any = body.get("thinking")
    return thinking is not None and thinking.get("type") in ("enabled", "adaptive")


def _asks_for_encrypted(body: dict[str, Any]) -> bool:
    return "reasoning.encrypted_content" in (body.get("include") or ())


# Where clients have to ask for reasoning. Who does not ask may get some nonetheless, from an upstream that
# always thinks, and drops it (Continue and pi do).
_ASKS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "anthropic": _asks_for_thinking,
    "openai-responses": _asks_for_encrypted,
}


def asks_for_reasoning(request: Request) -> bool:
    """Does the client want opaque reasoning, and so will it send it back?"""
    raw = request.raw
    asks = _ASKS.get(raw.protocol) if raw is not None else None
    return raw is not None and asks is not None and asks(raw.value)


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
    def stashes(self) -> bool:
        """Must the reasoning be kept for the client?"""
        if self.client in _SEND_BACK_SEALS and self.same:
            return False
        return self.client not in _SEND_BACK_THOUGHTS or not self.asked


class Restored(msgspec.Struct, frozen=True):
    """A request for an upstream, with what it had said itself."""

    request: Request
    notices: tuple[Notice, ...] = ()


async def restore(store: Store, request: Request, carriage: Carriage) -> Restored:
    """`request`, for one target, with the reasoning that its issuer gave and nobody else's."""
    wanted = lookups(request.messages, carriage)
    keys = wanted.keys()
    if not keys:
        return Restored(request)
    try:
        found = await store.get(keys)
    except StoreError as error:
        return Restored(request, (_unavailable(error),))
    return Restored(restored(request, wanted, found, carriage.issuer))


async def stash(
    store: Store,
    request: Request,
    said: Sequence[Part],
    carriage: Carriage,
    receipts: Iterable[CallReceipt] = (),
) -> tuple[Notice, ...]:
    """Keep what the client cannot of the answer `said`, as the client got it, to its own `request`.

    Once this returns, the client may send its next request to any process that shares the store.
    """
    entries = stashed(request.messages, said, carriage, receipts)
    try:
        await store.put(entries)
    except StoreError as error:
        return (_unavailable(error),)
    return ()


def _unavailable(error: StoreError) -> Notice:
    return Notice("carried-reasoning-lost", "messages", error.message)


class Lookups(msgspec.Struct, frozen=True):
    """Everything a store might know about some messages, by their index."""

    turns: dict[int, Key]
    issuers: dict[int, list[Key]]
    aliases: dict[str, Key]
    """By the hashed id."""

    def keys(self) -> list[Key]:
        unnamed = (key for keys in self.issuers.values() for key in keys)
        return list(dict.fromkeys((*self.turns.values(), *unnamed, *self.aliases.values())))


def lookups(messages: Sequence[Message], carriage: Carriage) -> Lookups:
    """What to look up for a request of these messages."""
    hashed = (id for message in messages for part in message.parts if (id := _hashed_id(part)))
    wanted = Lookups({}, {}, {id: _alias_key(id, carriage) for id in hashed})
    for index, message in enumerate(messages):
        if message.role != "assistant":
            continue
        answered = _Answered(messages, index)
        if carriage.stashes:
            wanted.turns[index] = _key_of_turn(answered, message, carriage)
        if carriage.named and any(not seal.issuer for seal in _seals(message.parts)):
            wanted.issuers[index] = _issuer_keys(answered, message.parts, carriage)
    return wanted


def stashed(
    messages: Sequence[Message], said: Sequence[Part], carriage: Carriage, receipts: Iterable[CallReceipt]
) -> list[Entry]:
    """The entries for an answer to `messages`."""
    entries = [
        Entry(_alias_key(receipt.id, carriage), receipt.upstream_id.encode("utf-8", "surrogatepass"))
        for receipt in receipts
        if receipt.id.startswith(_HASHED) and not receipt.dropped
    ]
    parts = [_as_read(part) for part in said]
    answered = _Answered(messages, len(messages))
    if carriage.stashes and (turn := turn_of(parts, words=carriage.words)) is not None:
        entries.append(Entry(_turn_key(answered, parts, carriage), _encode(turn)))
    if carriage.named and any(seal.protocol == carriage.client for seal in _seals(parts)):
        issuer = carriage.issuer.encode()
        entries += [Entry(key, issuer) for key in _issuer_keys(answered, parts, carriage)]
    return entries


def _as_read(part: Part) -> Part:
    """A call as the client's next request will have it: readers undo what was done to its id."""
    return msgspec.structs.replace(part, id=ids.from_client(part.id)) if isinstance(part, ToolCall) else part


def restored(request: Request, wanted: Lookups, found: Mapping[Key, bytes], issuer: str) -> Request:
    """`request` for `issuer` with what was found; the same object if that changes nothing."""
    values = ((id, found.get(key)) for id, key in wanted.aliases.items())
    aliases = {id: value.decode("utf-8", "surrogatepass") for id, value in values if value is not None}
    changed: list[Message] = []
    for index, message in enumerate(request.messages):
        new = _with_reasoning(message, found.get(wanted.turns[index])) if index in wanted.turns else message
        makers = {found[key].decode() for key in wanted.issuers.get(index, ()) if key in found} - {issuer}
        if makers:
            new = _with_maker(new, min(makers))
        changed.append(_with_aliases(new, aliases) if aliases else new)
    if all(new is old for new, old in zip(changed, request.messages, strict=True)):
        return request
    return request.changed(messages=tuple(changed))


def _with_reasoning(message: Message, value: bytes | None) -> Message:
    if value is None:
        return message
    turn = _decode(value)
    if carries(message.parts, turn):
        return message
    return Message(message.role, with_turn(message.parts, turn), message.name)


def _with_maker(message: Message, issuer: str) -> Message:
    """A seal of somebody else's is named as such, so that no writer gives it to this upstream."""
    if all(seal.issuer for seal in _seals(message.parts)):
        return message
    return Message(message.role, tuple(_named(part, issuer) for part in message.parts), message.name)


def _named(part: Part, issuer: str) -> Part:
    if isinstance(part, Thinking | ToolCall) and part.seal is not None and not part.seal.issuer:
        part = msgspec.structs.replace(part, seal=msgspec.structs.replace(part.seal, issuer=issuer))
    return msgspec.structs.replace(part, raw=None) if isinstance(part, ToolCall) else part


def _with_aliases(message: Message, aliases: Mapping[str, str]) -> Message:
    if not any(_hashed_id(part) in aliases for part in message.parts):
        return message
    parts = tuple(_renamed(part, aliases) for part in message.parts)
    return Message(message.role, parts, message.name)


def _renamed(part: Part, aliases: Mapping[str, str]) -> Part:
    match part:
        case ToolCall(id=id) if id in aliases:
            return msgspec.structs.replace(part, id=aliases[id], raw=None)
        case ToolResult(call_id=id) if id in aliases:
            return msgspec.structs.replace(part, call_id=aliases[id], raw=None)
        case _:
            return part


def _hashed_id(part: Part) -> str | None:
    id = part.id if isinstance(part, ToolCall) else part.call_id if isinstance(part, ToolResult) else ""
    return id if id.startswith(_HASHED) else None


def _seals(parts: Iterable[Part]) -> list[Seal]:
    sealed = (part for part in parts if isinstance(part, Thinking | ToolCall))
    return [part.seal for part in sealed if part.seal is not None]


def _alias_key(id: str, carriage: Carriage) -> Key:
    return Key(ALIASES, _digest(carriage.scope, carriage.issuer, id))


class _Answered(msgspec.Struct, frozen=True):
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


def _key_of_turn(answered: _Answered, message: Message, carriage: Carriage) -> Key:
    """The same for a turn of a history, which comes again with every request."""
    known = MEMORY.known(message.raw.value) if message.raw is not None else None
    alone = carriage.client not in _SEND_BACK_NO_IDS and any(isinstance(p, ToolCall) for p in message.parts)
    if known is None or not alone:
        return _turn_key(answered, message.parts, carriage)
    key = (carriage.client, carriage.scope, carriage.issuer)
    return known.note("turn", key, lambda: (_turn_key(answered, message.parts, carriage), True))


def _turn_key(answered: _Answered, parts: Sequence[Part], carriage: Carriage) -> Key:
    return Key(TURNS, _digest(carriage.scope, carriage.issuer, *_name(answered, parts, carriage)))


def _issuer_keys(answered: _Answered, parts: Sequence[Part], carriage: Carriage) -> list[Key]:
    """Where it is kept who made the unnamed seals of a turn.

    By the seal itself, unless the client puts seals together anew, as Chat's SDK does with its lists.
    """
    if carriage.client not in _SEND_BACK_SEALS:
        return [Key(ISSUERS, _digest(carriage.scope, *_name(answered, parts, carriage)))]
    return [Key(ISSUERS, _digest(seal.protocol, seal.data or seal.id or "")) for seal in _seals(parts)]


def _name(answered: _Answered, parts: Sequence[Part], carriage: Carriage) -> list[str]:
    """A turn is known by its first call, or by its words and what they answer."""
    call = next((part for part in parts if isinstance(part, ToolCall)), None)
    if call is not None:
        arguments = call.arguments if call.kind == "custom" else _canonical(call.arguments)
        which = answered.asked() if carriage.client in _SEND_BACK_NO_IDS else [call.id]
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
