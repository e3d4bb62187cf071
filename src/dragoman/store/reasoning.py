"""Return opaque reasoning to the upstream that issued it, also through clients that cannot carry it.

Anthropic and Responses clients send back the reasoning that they asked for, Gemini clients at least its
signatures. A Chat client sends back only text and calls. The rest of an answer (signed reasoning, signed
calls, and their positions) is stored under its first call, or under its text if it has no call. It is put
back when the client sends that turn again.

The store keeps three things:

- turns: the reasoning itself, for clients that cannot carry it;
- issuers: the upstream that issued a seal which the client carries without an issuer (a seal of its own
  protocol), so that another upstream of the same protocol does not get it;
- aliases: the upstream's original call id, if it was too long for the client.

`reasoning_keys.py` defines the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ..model.events import BlockStart, Event, Sealed
from ..model.messages import Message, Notice, Part, Request, Thinking, ToolCall, ToolResult
from ..protocols.common import call_ids as ids
from ..protocols.registry import client_protocol
from ..tools.receipts import CallReceipt
from . import TURNS, Store, StoredEntry, StoreError
from .reasoning_keys import (
    HASHED,
    FoundReasoning,
    ReasoningContext,
    TurnPosition,
    alias_key,
    hashed_ids,
    issuer_keys,
    lookups,
    seals,
    turn_key,
)
from .reasoning_turns import StoredTurn, carries, turn_of, with_turn

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(StoredTurn).decode


def asks_for_reasoning(request: Request) -> bool:
    """Does the client ask for opaque reasoning, and so send it back?

    A client that does not ask may still get reasoning, from an upstream that always thinks. Continue and pi
    drop it.
    """
    raw = request.raw
    asks = client_protocol(raw.protocol).reasoning.asked_for if raw is not None else None
    return raw is not None and asks is not None and asks(raw.value)


class Restored(msgspec.Struct, frozen=True):
    """A request for one upstream, with that upstream's reasoning."""

    request: Request
    notices: tuple[Notice, ...] = ()


def needs_no_restore(request: Request) -> bool:
    """Has no model answered yet? Then `restore` has nothing to put back."""
    messages = request.messages
    return not (any(message.role == "assistant" for message in messages) or hashed_ids(messages))


async def restore(store: Store, request: Request, context: ReasoningContext) -> Restored:
    """Put the reasoning of one target's upstream back into `request`, and of no other upstream."""
    # Hashing the keys of turns costs more than this check whether the store has any turns at all.
    turns = context.stores_turns and store.may_hold(TURNS)
    wanted = lookups(request.messages, context, turns=turns)
    keys = wanted.keys()
    if not keys:
        return Restored(request)
    try:
        found = await store.get(keys)
    except StoreError as error:
        return Restored(request, (_unavailable(error),))
    return Restored(restored(request, wanted.found(found), context.issuer) if found else request)


def has_reasoning(events: Iterable[Event]) -> bool:
    """Does an answer contain reasoning or seals, which may have to be stored?"""
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
    answer: Sequence[Part],
    context: ReasoningContext,
    receipts: Iterable[CallReceipt] = (),
) -> tuple[Notice, ...]:
    """Store the reasoning of `answer` that the client cannot carry.

    `answer` is as the client got it, `request` as the client sent it. After this returns, the client may send
    its next request to any process that shares the store.
    """
    entries = stashed(request.messages, answer, context, receipts)
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
    messages: Sequence[Message],
    answer: Sequence[Part],
    context: ReasoningContext,
    receipts: Iterable[CallReceipt],
) -> list[StoredEntry]:
    """The entries to store for an answer to `messages`."""
    entries = [
        StoredEntry(alias_key(receipt.id, context), receipt.upstream_id.encode("utf-8", "surrogatepass"))
        for receipt in receipts
        if receipt.id.startswith(HASHED) and not receipt.dropped
    ]
    if not answer:
        return entries
    parts = [_as_read(part) for part in answer]
    position = TurnPosition(messages, len(messages))
    if context.stores_turns and (turn := turn_of(parts, unsealed=context.wants_unsealed)) is not None:
        entries.append(StoredEntry(turn_key(position, parts, context), _encode(turn)))
    if context.track_issuers and any(seal.protocol == context.client for seal in seals(parts)):
        issuer = context.issuer.encode()
        entries += [StoredEntry(key, issuer) for key in issuer_keys(position, parts, context)]
    return entries


def _as_read(part: Part) -> Part:
    """A call as the reader will see it in the client's next request: with its original id."""
    return msgspec.structs.replace(part, id=ids.from_client(part.id)) if isinstance(part, ToolCall) else part


def restored(request: Request, found: FoundReasoning, issuer: str) -> Request:
    """`request` for `issuer` with the stored reasoning; the same object if nothing changes."""
    messages = request.messages
    # A hashed id is in the call and in its result.
    aliases = {id: own for ids in found.aliases.values() for id, own in ids.items()}
    changed: dict[int, Message] = {}
    for index in {*found.turns, *found.issuers, *found.aliases}:
        new = _with_reasoning(messages[index], found.turns.get(index))
        if others := found.issuers.get(index, set()) - {issuer}:
            new = _with_issuer(new, min(others))
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


def _with_issuer(message: Message, issuer: str) -> Message:
    """Name the issuer of the unnamed seals: writers drop the seals of another issuer."""
    if all(seal.issuer for seal in seals(message.parts)):
        return message
    return Message(message.role, tuple(_add_issuer(part, issuer) for part in message.parts), message.name)


def _add_issuer(part: Part, issuer: str) -> Part:
    if isinstance(part, (Thinking, ToolCall)) and part.seal is not None and not part.seal.issuer:
        part = msgspec.structs.replace(part, seal=msgspec.structs.replace(part.seal, issuer=issuer))
    return msgspec.structs.replace(part, raw=None) if isinstance(part, ToolCall) else part


def _with_aliases(message: Message, aliases: Mapping[str, str]) -> Message:
    parts = tuple([_renamed(part, aliases) for part in message.parts])
    return message if parts == message.parts else Message(message.role, parts, message.name)


def _renamed(part: Part, aliases: Mapping[str, str]) -> Part:
    match part:
        case ToolCall(id=id) if id in aliases:
            return msgspec.structs.replace(part, id=aliases[id], raw=None)
        case ToolResult(call_id=id) if id in aliases:
            return msgspec.structs.replace(part, call_id=aliases[id], raw=None)
        case _:
            return part
