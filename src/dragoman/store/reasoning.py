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

`lookups.py` says under which keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ..model.events import BlockStart, Event, Sealed
from ..model.messages import Message, Notice, Part, Request, Thinking, ToolCall, ToolResult
from ..protocols.common import call_ids as ids
from ..protocols.registry import client_protocol
from ..tools.receipts import CallReceipt
from . import TURNS, Entry, Store, StoreError
from .reasoning_keys import (
    HASHED,
    Answered,
    Carriage,
    Kept,
    alias_key,
    hashed_ids,
    issuer_keys,
    lookups,
    seals,
    turn_key,
)
from .reasoning_turns import Turn, carries, turn_of, with_turn

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Turn).decode


def asks_for_reasoning(request: Request) -> bool:
    """Does the client want opaque reasoning, and so will it send it back?

    A client that does not ask may get some nonetheless, from an upstream that always thinks, and drops it
    (Continue and pi do).
    """
    raw = request.raw
    asks = client_protocol(raw.protocol).reasoning.asked_for if raw is not None else None
    return raw is not None and asks is not None and asks(raw.value)


class Restored(msgspec.Struct, frozen=True):
    """A request for an upstream, with what it had said itself."""

    request: Request
    notices: tuple[Notice, ...] = ()


def nothing_kept(request: Request) -> bool:
    """Is there surely nothing for `restore` to put back? So it is where nothing was answered yet."""
    return not any(map(_is_answer, request.messages))


def _is_answer(message: Message) -> bool:
    """Was it said by a model, or does it name a call that was?"""
    return message.role == "assistant" or bool(hashed_ids(message.parts))


async def restore(store: Store, request: Request, carriage: Carriage) -> Restored:
    """`request`, for one target, with the reasoning that its issuer gave and nobody else's."""
    # To find out the keys of turns costs more than to ask whether the store holds any turns at all.
    turns = carriage.stashes and store.may_hold(TURNS)
    wanted = lookups(request.messages, carriage, turns=turns)
    keys = wanted.keys()
    if not keys:
        return Restored(request)
    try:
        found = await store.get(keys)
    except StoreError as error:
        return Restored(request, (_unavailable(error),))
    return Restored(restored(request, wanted.kept(found), carriage.issuer) if found else request)


def has_reasoning(events: Iterable[Event]) -> bool:
    """Is there anything in an answer that its client may have no place for, and that is to be stashed?"""
    for event in events:
        if type(event) is Sealed:
            return True
        if type(event) is BlockStart:
            part = event.part
            if type(part) is Thinking or (type(part) is ToolCall and part.seal is not None):
                return True
    return False


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
    if not entries:
        return ()
    try:
        await store.put(entries)
    except StoreError as error:
        return (_unavailable(error),)
    return ()


def _unavailable(error: StoreError) -> Notice:
    return Notice("carried-reasoning-lost", "messages", error.message)


def stashed(
    messages: Sequence[Message], said: Sequence[Part], carriage: Carriage, receipts: Iterable[CallReceipt]
) -> list[Entry]:
    """The entries for an answer to `messages`."""
    entries = [
        Entry(alias_key(receipt.id, carriage), receipt.upstream_id.encode("utf-8", "surrogatepass"))
        for receipt in receipts
        if receipt.id.startswith(HASHED) and not receipt.dropped
    ]
    if not said:
        return entries
    parts = [_as_read(part) for part in said]
    answered = Answered(messages, len(messages))
    if carriage.stashes and (turn := turn_of(parts, words=carriage.words)) is not None:
        entries.append(Entry(turn_key(answered, parts, carriage), _encode(turn)))
    if carriage.named and any(seal.protocol == carriage.client for seal in seals(parts)):
        issuer = carriage.issuer.encode()
        entries += [Entry(key, issuer) for key in issuer_keys(answered, parts, carriage)]
    return entries


def _as_read(part: Part) -> Part:
    """A call as the client's next request will have it: readers undo what was done to its id."""
    return msgspec.structs.replace(part, id=ids.from_client(part.id)) if isinstance(part, ToolCall) else part


def restored(request: Request, kept: Kept, issuer: str) -> Request:
    """`request` for `issuer` with what was kept; the same object if that changes nothing."""
    messages = request.messages
    # An id that was too long stands in the call and in its result.
    aliases = {id: own for ids in kept.aliases.values() for id, own in ids.items()}
    changed: dict[int, Message] = {}
    for index in {*kept.turns, *kept.makers, *kept.aliases}:
        new = _with_reasoning(messages[index], kept.turns.get(index))
        if makers := kept.makers.get(index, set()) - {issuer}:
            new = _with_maker(new, min(makers))
        new = _with_aliases(new, aliases)
        if new is not messages[index]:
            changed[index] = new
    if not changed:
        return request
    return request.changed(messages=tuple(changed.get(at, old) for at, old in enumerate(messages)))


def _with_reasoning(message: Message, value: bytes | None) -> Message:
    if value is None:
        return message
    turn = _decode(value)
    if carries(message.parts, turn):
        return message
    return Message(message.role, with_turn(message.parts, turn), message.name)


def _with_maker(message: Message, issuer: str) -> Message:
    """A seal of somebody else's is named as such, so that no writer gives it to this upstream."""
    if all(seal.issuer for seal in seals(message.parts)):
        return message
    return Message(message.role, tuple(_named(part, issuer) for part in message.parts), message.name)


def _named(part: Part, issuer: str) -> Part:
    if isinstance(part, (Thinking, ToolCall)) and part.seal is not None and not part.seal.issuer:
        part = msgspec.structs.replace(part, seal=msgspec.structs.replace(part.seal, issuer=issuer))
    return msgspec.structs.replace(part, raw=None) if isinstance(part, ToolCall) else part


def _with_aliases(message: Message, aliases: Mapping[str, str]) -> Message:
    if not any(id in aliases for id in hashed_ids(message.parts)):
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
