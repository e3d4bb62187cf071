"""`previous_response_id`, `store` and `item_reference` for Responses clients, over any upstream.

The store keeps the items that a client sent and got, as JSON, each once by content hash. To continue from a
response, the request is read again with all these items in its `input`. So the upstream gets exactly the
request that it would get if the client had sent the whole history. Instructions and tools are not
carried over: OpenAI does not do that either.

An upstream that stores responses itself (`native`) gets its own ids back unchanged. Dragoman stores the items
too, so that the next request can go to another upstream.

A client that sends `store: false` may still continue from a response while its WebSocket is open. `memory`
holds these responses; the store never gets them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from ..model.errors import BadRequest
from ..model.events import Failed, FailureKind
from ..model.messages import Message, Notice, Opaque, Request
from ..protocols.base import ClientProtocol
from ..protocols.common.fields import Obj
from ..protocols.common.typed_json import as_json, items, opens_string
from ..protocols.registry import client_protocol
from . import ITEM_IDS, ITEMS, RESPONSES, EntryKey, Store, StoredEntry, StoreError
from .memory import Memory
from .scoped import scoped

_REFERENCE = "item_reference"
_FINISHED = frozenset({"completed", "incomplete"})


class PreviousResponseNotFound(BadRequest):
    """OpenAI answers 400 with this code. Clients then send the whole history instead."""

    code = "previous_response_not_found"

    def __init__(self, id: str) -> None:
        super().__init__(
            f"Previous response with id {id!r} not found: it has expired, or was not stored. "
            "Send the whole conversation as input instead."
        )
        self.path = "previous_response_id"


class StoredResponse(msgspec.Struct, frozen=True, array_like=True):
    """A response in the store: its issuer, and the items of its whole conversation."""

    issuer: str
    model: str
    native: bool
    """The id is the upstream's own, and the upstream stores the response too."""
    whole: bool
    """Are all items known? Not if it continues a response that only the upstream knows."""
    items: tuple[str, ...]
    """Digests of all items up to and including this response."""


class _StoredItem(msgspec.Struct, frozen=True, array_like=True):
    issuer: str
    native: bool
    item: str


class Continued(msgspec.Struct, frozen=True, kw_only=True):
    """A client's request for one target, and what is needed to store the response."""

    request: Request
    items: tuple[bytes, ...] = ()
    """The history and the input of the request, as JSON."""
    earlier: tuple[str, ...] = ()
    """Digests of the history before `items`, if the upstream itself has it."""
    whole: bool = True


_encode = msgspec.json.Encoder().encode
_decode_stored = msgspec.json.Decoder(StoredResponse).decode
_decode_stored_item = msgspec.json.Decoder(_StoredItem).decode


class _PossibleReference(msgspec.Struct, frozen=True):
    """The members of an input item that tell whether it is a reference to another item."""

    type: Any = None
    id: Any = None
    role: Any = msgspec.UNSET


_decode_reference = msgspec.json.Decoder(_PossibleReference).decode


def failure(error: PreviousResponseNotFound) -> Failed:
    """The error as an event, with the code that clients look for."""
    return Failed(FailureKind.INVALID_REQUEST, error.message, error.status, error.code)


class _Lookup:
    """Looks into the memory of the connection first, then into the store."""

    __slots__ = ("_memory", "_store")

    def __init__(self, store: Store, memory: Memory | None) -> None:
        self._store = store
        self._memory = memory

    async def get(self, keys: Sequence[EntryKey]) -> dict[EntryKey, bytes]:
        if self._memory is None:
            return await self._store.get(keys)
        found = self._memory.get(keys)
        missing = [key for key in keys if key not in found]
        return found | await self._store.get(missing) if missing else found


async def previous(
    store: Store, request: Request, scope: str = "", memory: Memory | None = None
) -> StoredResponse | None:
    """The stored response that `request` continues; None if there is none. Its issuer is the best target."""
    id = request.settings.previous_response_id
    if id is None or _fields(request).get("conversation") is not None:
        return None
    key = scoped(RESPONSES, scope, id)
    value = (await _Lookup(store, memory).get([key])).get(key)
    return None if value is None else _decode_stored(value)


def forget(memory: Memory, id: str, scope: str = "") -> None:
    """Drop a response from the memory of a connection. The store keeps it."""
    memory.drop(scoped(RESPONSES, scope, id))


def is_kept_by_upstream(request: Request, kept: StoredResponse | None, issuer: str) -> bool:
    """Does the upstream `issuer` keep the earlier conversation itself, in the client's protocol?"""
    if _fields(request).get("conversation") is not None:
        return True
    return kept is not None and kept.native and kept.issuer == issuer


async def expand(
    store: Store,
    request: Request,
    stored: StoredResponse | None,
    *,
    issuer: str,
    native: bool = False,
    scope: str = "",
    memory: Memory | None = None,
) -> Continued:
    """Add the stored history to a client's `request`, for one target. `stored` is the result of `previous`.

    Raises PreviousResponseNotFound, or BadRequest for an unknown item reference.
    """
    fields = _fields(request)
    id = request.settings.previous_response_id
    has_references = any(map(_is_reference, request.messages))
    if request.settings.store is False and memory is None and id is None and not has_references:
        return Continued(request=request)
    lookup = _Lookup(store, memory)
    given = await _resolve(lookup, _input(fields), issuer if native else None, scope)
    if native and (stored is None or (stored.native and stored.issuer == issuer)):
        return _for_native(request, given, stored)
    if fields.get("conversation") is not None:
        message = "this upstream does not store conversations: send the history, or use previous_response_id"
        raise BadRequest(message, "conversation")
    history = [] if id is None else await _history(lookup, id, stored)
    items = (*history, *(_content(item, index) for index, item in enumerate(given)))
    changed = id is not None or has_references
    return Continued(request=_read(_client(request), fields, items) if changed else request, items=items)


async def record(
    store: Store,
    continued: Continued,
    response: Obj | None,
    *,
    issuer: str,
    native: bool = False,
    scope: str = "",
    memory: Memory | None = None,
) -> tuple[Notice, ...]:
    """Store a finished `response` as the client gets it. With `store: false`, only `memory` keeps it.

    Call this before the client gets its end, so that it can continue as soon as it knows the id.
    """
    unstored = continued.request.settings.store is False
    if response is None or response.get("status") not in _FINISHED or (unstored and memory is None):
        return ()
    output = [_encode(item) for item in response["output"]]
    digests = [_digest_of(item) for item in (*continued.items, *output)]
    items = zip(digests, (*continued.items, *output), strict=True)
    entries = [StoredEntry(EntryKey(ITEMS, digest), item) for digest, item in items]
    for digest, item in zip(digests[len(continued.items) :], response["output"], strict=True):
        if id := item.get("id"):
            value = _encode(_StoredItem(issuer, native, digest))
            entries.append(StoredEntry(scoped(ITEM_IDS, scope, id), value))
    known = (*continued.earlier, *digests)
    stored = StoredResponse(issuer, response["model"], native, continued.whole, known)
    entries.append(StoredEntry(scoped(RESPONSES, scope, response["id"]), _encode(stored)))
    if unstored and memory is not None:
        memory.put(entries)
        return ()
    try:
        await store.put(entries)
    except StoreError as error:
        return (Notice("response-not-stored", "store", error.message),)
    return ()


def _fields(request: Request) -> Obj:
    """The request body as the client sent it. The request must not have been changed."""
    assert request.raw is not None
    assert _client(request).keeps_responses
    return request.raw.value


def _client(request: Request) -> ClientProtocol:
    assert request.raw is not None
    return client_protocol(request.raw.protocol)


def _input(fields: Obj) -> list[msgspec.Raw]:
    """The items of `input`, as JSON."""
    given: msgspec.Raw | None = fields.get("input")
    if given is None:
        return []
    if opens_string(given):
        return [as_json({"type": "message", "role": "user", "content": given})]
    return items(given, "input")


def _is_reference(message: Message) -> bool:
    """Was the message read from an `item_reference`?"""
    part = message.parts[0] if message.parts else None
    return isinstance(part, Opaque) and part.type == _REFERENCE


def _read(
    client: ClientProtocol, fields: Obj, items: Sequence[bytes], *, keep_previous: bool = False
) -> Request:
    """Read the request again with `items` as its input. `keep_previous` keeps `previous_response_id`."""
    body = {key: value for key, value in fields.items() if keep_previous or key != "previous_response_id"}
    body["input"] = [msgspec.Raw(item) for item in items]
    return client.read_request(_encode(body), "")


class _InputItem(msgspec.Struct, frozen=True):
    """One item of a request's input."""

    sent: bytes
    content: bytes | None
    """The item itself, or the item that it refers to; None for an unknown reference."""
    passes: bool
    """May the target get it as the client sent it?"""
    id: str = ""


def _for_native(request: Request, given: Sequence[_InputItem], stored: StoredResponse | None) -> Continued:
    """The request for an upstream that has the history. References that it does not know are resolved."""
    if not all(item.passes for item in given):
        resolved = [item.sent if item.passes else item.content or item.sent for item in given]
        request = _read(_client(request), _fields(request), resolved, keep_previous=True)
    begins = request.settings.previous_response_id is None
    known = all(item.content is not None for item in given)
    return Continued(
        request=request,
        items=tuple(item.content or item.sent for item in given),
        earlier=stored.items if stored else (),
        whole=known and (stored.whole if stored else begins),
    )


def _content(item: _InputItem, index: int) -> bytes:
    if item.content is None:
        message = f"Item with id {item.id!r} not found: it has expired, or was not stored. Send it in full."
        raise BadRequest(message, f"input[{index}].id")
    return item.content


async def _history(lookup: _Lookup, id: str, stored: StoredResponse | None) -> list[bytes]:
    if stored is None or not stored.whole:
        raise PreviousResponseNotFound(id)
    keys = [EntryKey(ITEMS, digest) for digest in stored.items]
    found = await lookup.get(keys)
    items = [found.get(key) for key in keys]
    if any(item is None for item in items):
        raise PreviousResponseNotFound(id)  # some items were deleted to free space
    return [item for item in items if item is not None]


async def _resolve(
    lookup: _Lookup, items: Sequence[msgspec.Raw], native: str | None, scope: str
) -> list[_InputItem]:
    """Look up the references in `items`. `native` is the target's name if it stores responses itself."""
    references = list(map(_reference, items))
    names = {id: scoped(ITEM_IDS, scope, id) for id in references if id}
    values = await lookup.get(list(names.values()))
    known = {id: _decode_stored_item(values[key]) for id, key in names.items() if key in values}
    contents = await lookup.get([EntryKey(ITEMS, stored.item) for stored in known.values()])
    result: list[_InputItem] = []
    for item, id in zip(items, references, strict=True):
        sent = bytes(item)
        if not id:
            result.append(_InputItem(sent, sent, True))
            continue
        stored = known.get(id)
        content = contents.get(EntryKey(ITEMS, stored.item)) if stored else None
        # A native target may know an item that is not in our store.
        targets_own = content is None or (stored is not None and stored.native and stored.issuer == native)
        result.append(_InputItem(sent, content, native is not None and targets_own, id))
    return result


def _reference(raw: msgspec.Raw) -> str:
    """The id that the item refers to; empty if it is no reference. A reference may be a bare `{id}`."""
    item = _decode_reference(raw)
    bare = item.type is None and item.role is msgspec.UNSET
    id = item.id if bare or item.type == _REFERENCE else None
    return id if isinstance(id, str) else ""


def _digest_of(item: bytes) -> str:
    return hashlib.blake2b(item, digest_size=16).hexdigest()
