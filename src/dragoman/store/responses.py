"""`previous_response_id`, `store` and `item_reference` for Responses clients, over any upstream.

What is kept is the wire's own: the items a client sent and the items it got, each once, by content. To go on
from a response is to read the request again with all of these in its `input`, so the upstream is asked
exactly what it would be asked if the client had sent the whole history (protocols.md law 49). Instructions
and tools are not carried over, as at OpenAI.

An upstream that keeps responses itself (`native`) gets its own ids back as they are. The items are kept all
the same: should the next request go to another upstream, it has the history.

A client that asks not to store a response may still go on from it while its connection lasts. `memory`,
where there is one, holds such responses; the store never sees them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from ..model.errors import BadRequest
from ..model.events import Failed, FailureKind
from ..model.messages import Message, Notice, Opaque, Request
from ..protocols.base import ClientProtocol, Minted
from ..protocols.common.collect import Answer
from ..protocols.common.fields import Obj
from ..protocols.common.typed_json import as_json, items, opens_string
from ..protocols.registry import client_protocol
from . import ITEM_IDS, ITEMS, RESPONSES, Entry, Key, Store, StoreError
from .memory import Memory

_REFERENCE = "item_reference"
_ENDINGS = frozenset({"response.completed", "response.incomplete"})
_UNFINISHED = frozenset({"failed", "cancelled", "queued", "in_progress"})


class PreviousResponseNotFound(BadRequest):
    """OpenAI answers with 400 and this code, by which clients know to send the whole history instead."""

    code = "previous_response_not_found"

    def __init__(self, id: str) -> None:
        super().__init__(
            f"Previous response with id {id!r} not found: it is too old, or was not stored. "
            "Send the whole conversation as input instead."
        )
        self.path = "previous_response_id"


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """A response that was stored."""

    issuer: str
    model: str
    native: bool
    """Its id is the upstream's own, and the upstream keeps it too."""
    whole: bool
    """Are all items there? Not if it went on from a response that only the upstream knows."""
    items: tuple[str, ...]
    """Everything said up to and with this response, by digest."""


class _KeptId(msgspec.Struct, frozen=True, array_like=True):
    issuer: str
    native: bool
    item: str


class Continued(msgspec.Struct, frozen=True, kw_only=True):
    """A client's request as one target is to get it, and what must be known to keep the response."""

    request: Request
    items: tuple[bytes, ...] = ()
    """The history and the request's own input, as JSON."""
    earlier: tuple[str, ...] = ()
    """What comes before `items`, where the upstream itself has it."""
    whole: bool = True


_encode = msgspec.json.Encoder().encode
_decode_kept = msgspec.json.Decoder(Kept).decode
_decode_id = msgspec.json.Decoder(_KeptId).decode


class _Response(msgspec.Struct, frozen=True):
    id: str
    output: list[msgspec.Raw] = []
    status: str = ""
    model: str = ""


class _Item(msgspec.Struct, frozen=True):
    id: str | None = None


class _Named(msgspec.Struct, frozen=True):
    """An input item, as far as it may be a reference to another one."""

    type: Any = None
    id: Any = None
    role: Any = msgspec.UNSET


class _Ending(msgspec.Struct, frozen=True):
    type: str
    response: _Response | None = None


_decode_response = msgspec.json.Decoder(_Response).decode
_decode_item = msgspec.json.Decoder(_Item).decode
_decode_named = msgspec.json.Decoder(_Named).decode
_decode_ending = msgspec.json.Decoder(_Ending).decode


def failure(error: PreviousResponseNotFound) -> Failed:
    """The error with its code, which clients look at."""
    return Failed(FailureKind.INVALID_REQUEST, error.message, error.status, error.code)


class _Lookup:
    """Looks in the connection's memory first, then in the store."""

    __slots__ = ("_memory", "_store")

    def __init__(self, store: Store, memory: Memory | None) -> None:
        self._store = store
        self._memory = memory

    async def get(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        if self._memory is None:
            return await self._store.get(keys)
        found = self._memory.get(keys)
        missing = [key for key in keys if key not in found]
        return found | await self._store.get(missing) if missing else found


async def previous(
    store: Store, request: Request, scope: str = "", memory: Memory | None = None
) -> Kept | None:
    """The response that `request` goes on from, if it is known here. Its issuer is the best target."""
    id = request.settings.previous_response_id
    if id is None or _fields(request).get("conversation") is not None:
        return None
    key = Key(RESPONSES, _digest(scope, id))
    value = (await _Lookup(store, memory).get([key])).get(key)
    return None if value is None else _decode_kept(value)


def kept_by(request: Request, kept: Kept | None, issuer: str) -> bool:
    """Does the upstream `issuer`, if it speaks the client's protocol, itself keep what is gone on from?"""
    if _fields(request).get("conversation") is not None:
        return True
    return kept is not None and kept.native and kept.issuer == issuer


async def expand(
    store: Store,
    request: Request,
    kept: Kept | None,
    *,
    issuer: str,
    native: bool = False,
    scope: str = "",
    memory: Memory | None = None,
) -> Continued:
    """A client's `request`, as it was read, for one target; `kept` is what `previous` gave for it.

    Raises PreviousResponseNotFound, or BadRequest for an item reference that is not known.
    """
    fields = _fields(request)
    id = request.settings.previous_response_id
    referring = any(map(_is_reference, request.messages))
    if request.settings.store is False and memory is None and id is None and not referring:
        return Continued(request=request)
    known_here = _Lookup(store, memory)
    said = await _said(known_here, _input(fields), issuer if native else None, scope)
    if native and (kept is None or (kept.native and kept.issuer == issuer)):
        return _passed_on(request, said, kept)
    if fields.get("conversation") is not None:
        message = "this upstream keeps no conversations: send the history, or use previous_response_id"
        raise BadRequest(message, "conversation")
    history = [] if id is None else await _history(known_here, id, kept)
    known = (*history, *(_content(item, index) for index, item in enumerate(said)))
    changed = id is not None or referring
    return Continued(request=_read(_client(request), fields, known) if changed else request, items=known)


async def record(
    store: Store,
    continued: Continued,
    final: bytes,
    *,
    issuer: str,
    native: bool = False,
    scope: str = "",
    answer: Answer | None = None,
    memory: Memory | None = None,
) -> tuple[Notice, ...]:
    """Keep a response that is over. One that the client does not want stored is kept in `memory` at most.

    `final` is what the client gets last: the bytes of the `feed` or `close` after which the exchange was
    over. Called before they are sent, the response can be gone on from as soon as its id is known.
    `answer` helps out where an upstream's last event does not repeat what it said.
    """
    unstored = continued.request.settings.store is False
    response = None if unstored and memory is None else final_response(final)
    if response is None:
        return ()
    client = _client(continued.request)
    output = [bytes(item) for item in response.output or _output(client, answer, response.id)]
    said = [(_digest_of(item), item) for item in (*continued.items, *output)]
    digests = (*continued.earlier, *(digest for digest, _ in said))
    kept = Kept(issuer, response.model, native, continued.whole, digests)
    entries = [Entry(Key(ITEMS, digest), item) for digest, item in said]
    entries += _by_id(said[len(continued.items) :], issuer, native, scope)
    entries.append(Entry(Key(RESPONSES, _digest(scope, response.id)), _encode(kept)))
    if unstored and memory is not None:
        memory.put(entries)
        return ()
    try:
        await store.put(entries)
    except StoreError as error:
        return (Notice("response-not-stored", "store", error.message),)
    return ()


def _output(client: ClientProtocol, answer: Answer | None, id: str) -> list[msgspec.Raw]:
    if answer is None or answer.end is None:
        return []
    minted = Minted(id=id.removeprefix("resp_"), created=0, model="")
    return _decode_response(client.render(answer, minted)).output


def final_response(final: bytes) -> _Response | None:
    """The response in a body, or in the last event of a stream; None if it failed."""
    if final.lstrip()[:1] == b"{":
        response = _decoded(final)
        return response if response is not None and response.status not in _UNFINISHED else None
    for line in reversed(final.splitlines()):
        if line.startswith(b"data:"):
            ending = _decoded_ending(line[5:])
            if ending is not None and ending.type in _ENDINGS:
                return ending.response
    return None


def _decoded(data: bytes) -> _Response | None:
    try:
        return _decode_response(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None  # an error's body


def _decoded_ending(data: bytes) -> _Ending | None:
    try:
        return _decode_ending(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None  # `[DONE]`, or an event of another shape


def _fields(request: Request) -> Obj:
    """The body as it came. Only a request that nobody has changed can be gone on from."""
    assert request.raw is not None
    assert _client(request).keeps_responses
    return request.raw.value


def _client(request: Request) -> ClientProtocol:
    assert request.raw is not None
    return client_protocol(request.raw.protocol)


def _input(fields: Obj) -> list[msgspec.Raw]:
    """The items of `input`, not decoded."""
    given: msgspec.Raw | None = fields.get("input")
    if given is None:
        return []
    if opens_string(given):
        return [as_json({"type": "message", "role": "user", "content": given})]
    return items(given, "input")


def _is_reference(message: Message) -> bool:
    """Was it read from an item that stands for another one?"""
    part = message.parts[0] if message.parts else None
    return isinstance(part, Opaque) and part.type == _REFERENCE


def _read(client: ClientProtocol, fields: Obj, items: Sequence[bytes], *, goes_on: bool = False) -> Request:
    """The request with all of `items` for its input, as if the client had sent it so."""
    body = {key: value for key, value in fields.items() if goes_on or key != "previous_response_id"}
    body["input"] = [msgspec.Raw(item) for item in items]
    return client.read_request(_encode(body), "")


class _Said(msgspec.Struct, frozen=True):
    """One item of a request's input."""

    given: bytes
    content: bytes | None
    """What it stands for; None for a reference to something that is not known here."""
    at_home: bool
    """May it go to the target as it was given?"""
    id: str = ""


def _passed_on(request: Request, said: Sequence[_Said], kept: Kept | None) -> Continued:
    """For an upstream that has the history itself. What it does not have of the input is given to it."""
    if not all(item.at_home for item in said):
        sent = [item.given if item.at_home else item.content or item.given for item in said]
        request = _read(_client(request), _fields(request), sent, goes_on=True)
    begins = request.settings.previous_response_id is None
    known = all(item.content is not None for item in said)
    return Continued(
        request=request,
        items=tuple(item.content or item.given for item in said),
        earlier=kept.items if kept else (),
        whole=known and (kept.whole if kept else begins),
    )


def _content(item: _Said, index: int) -> bytes:
    if item.content is None:
        message = f"Item with id {item.id!r} not found: it is too old, or was not stored. Send it in full."
        raise BadRequest(message, f"input[{index}].id")
    return item.content


async def _history(store: _Lookup, id: str, kept: Kept | None) -> list[bytes]:
    if kept is None or not kept.whole:
        raise PreviousResponseNotFound(id)
    keys = [Key(ITEMS, digest) for digest in kept.items]
    found = await store.get(keys)
    items = [found.get(key) for key in keys]
    if any(item is None for item in items):
        raise PreviousResponseNotFound(id)  # some of it had to make room
    return [item for item in items if item is not None]


async def _said(store: _Lookup, items: Sequence[msgspec.Raw], home: str | None, scope: str) -> list[_Said]:
    """`items`, references looked up; `home` is the target, if it keeps what it says itself."""
    references = list(map(_reference, items))
    names = {id: Key(ITEM_IDS, _digest(scope, id)) for id in references if id}
    values = await store.get(list(names.values()))
    known = {id: _decode_id(values[key]) for id, key in names.items() if key in values}
    contents = await store.get([Key(ITEMS, kept.item) for kept in known.values()])
    result: list[_Said] = []
    for item, id in zip(items, references, strict=True):
        given = bytes(item)
        if not id:
            result.append(_Said(given, given, True))
            continue
        kept = known.get(id)
        content = contents.get(Key(ITEMS, kept.item)) if kept else None
        its_own = content is None or (kept is not None and kept.native and kept.issuer == home)
        result.append(_Said(given, content, home is not None and its_own, id))
    return result


def _reference(raw: msgspec.Raw) -> str:
    """The id of the item that this one stands for: it may be a bare `{id}`."""
    item = _decode_named(raw)
    bare = item.type is None and item.role is msgspec.UNSET
    id = item.id if bare or item.type == _REFERENCE else None
    return id if isinstance(id, str) else ""


def _by_id(said: Sequence[tuple[str, bytes]], issuer: str, native: bool, scope: str) -> list[Entry]:
    entries: list[Entry] = []
    for digest, item in said:
        if id := _decode_item(item).id:
            value = _encode(_KeptId(issuer, native, digest))
            entries.append(Entry(Key(ITEM_IDS, _digest(scope, id)), value))
    return entries


def _digest_of(item: bytes) -> str:
    return hashlib.blake2b(item, digest_size=16).hexdigest()


def _digest(scope: str, id: str) -> str:
    text = f"{len(scope)}:{scope}{id}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
