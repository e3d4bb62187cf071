"""Store searches until the client's next turn, for clients whose protocol has no place for them.

The client gets only the calls. Its next request has their results, and the model needs what was found, too.
The request may reach another process, so the searches are in the store. If they are lost, the model may
search again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..model.messages import Message, Notice, Request, Search, ToolCall
from ..protocols.common import call_ids
from ..protocols.common.searches import with_calls
from . import SEARCHES, EntryKey, Store, StoredEntry, StoreError
from .scoped import scoped

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[Search, ...]).decode


async def keep(
    store: Store, scope: str, calls: Iterable[ToolCall], found: Sequence[Search]
) -> tuple[Notice, ...]:
    """Store `found` by the calls of the same turn, in the scope of the client."""
    value = _encode(found)
    keys = {scoped(SEARCHES, scope, call_ids.from_client(call.id)) for call in calls}
    try:
        await store.put([StoredEntry(key, value) for key in keys])
    except StoreError as error:
        return (_lost(error),)
    return ()


async def restore(store: Store, request: Request, scope: str) -> tuple[Request, tuple[Notice, ...]]:
    """`request` with the searches that belong to its turns."""
    keys = [[scoped(SEARCHES, scope, id) for id in _calls(message)] for message in request.messages]
    wanted = [key for each in keys for key in each]
    if not wanted:
        return request, ()
    try:
        values = await store.get(wanted)
    except StoreError as error:
        return request, (_lost(error),)
    if not values:
        return request, ()
    pairs = zip(request.messages, keys, strict=True)
    messages = [_with_search(message, each, values) for message, each in pairs]
    return request.changed(messages=tuple(with_calls(messages))), ()


def _calls(message: Message) -> list[str]:
    if message.role != "assistant":
        return []
    return [part.id for part in message.parts if isinstance(part, ToolCall)]


def _with_search(message: Message, keys: Sequence[EntryKey], values: dict[EntryKey, bytes]) -> Message:
    value = next((values[key] for key in keys if key in values), None)
    return (
        message if value is None else Message(message.role, (*message.parts, *_decode(value)), message.name)
    )


def _lost(error: StoreError) -> Notice:
    return Notice("search-results-lost", "messages", error.message)
