"""The `/exchanges` API: list, receipt, bytes, recording, replay, and a live feed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from ...access.identity import Identity
from ...model.errors import BadRequest, DragomanError, Fault
from ...observe.receipts import ExchangeSummary, call_detail, detail, find, parse_query, summary
from ...observe.tap import ClientBytes, Redactor, Track
from ...protocols.common import failures
from ...protocols.registry import CLIENTS
from ...recording import ENDING, dump, loads, replay
from ...transport.server import Handler, HttpAnswer, HttpRequest, HttpResponse, Route
from ..caller import identity_of
from ..errors import client_of, error_response
from ..state import State
from .exchange_bytes import chunks_as_text, sides
from .live_feed import live

_ApiHandler = Callable[[State, HttpRequest], Awaitable[HttpAnswer]]


class NoSuchExchange(DragomanError):
    """The exchange never existed, or is no longer kept."""

    status = 404
    fault: Fault = "client"


def routes(state: State) -> list[Route]:
    return [
        Route("GET", "/exchanges", with_errors(state, _list_exchanges)),
        Route("GET", "/exchanges/live", with_errors(state, live)),
        Route("GET", "/exchanges/{id}", with_errors(state, _get_receipt)),
        Route("GET", "/exchanges/{id}/bytes", with_errors(state, _get_bytes)),
        Route("GET", "/exchanges/{id}/recording", with_errors(state, _get_recording)),
        Route("POST", "/exchanges/{id}/replay", with_errors(state, _replay)),
    ]


def with_errors(state: State, handler: _ApiHandler) -> Handler:
    """Turn errors of `handler` into responses."""

    async def handle(request: HttpRequest) -> HttpAnswer:
        try:
            return await handler(state, request)
        except DragomanError as error:
            return error_response(client_of(request), failures.from_request_error(error), "")

    return handle


async def _list_exchanges(state: State, request: HttpRequest) -> HttpResponse:
    query = parse_query(request.query)
    identity = identity_of(state.keys, request)
    if not identity.sees_all:
        query = msgspec.structs.replace(query, key=identity.name)
    page = await find(query, in_memory(state), state.store)
    kept = (
        await asyncio.to_thread(state.observed.kept.ids)
        if state.observed.kept is not None
        else frozenset[str]()
    )
    shown = [
        msgspec.structs.replace(entry, recorded=entry.id in state.observed.tap.ring or entry.id in kept)
        for entry in page.exchanges
    ]
    page = msgspec.structs.replace(page, exchanges=shown, lost=state.observed.metrics.lost_receipts())
    return json_answer(state.observed.redactor.scrub(msgspec.json.encode(page)))


async def _get_receipt(state: State, request: HttpRequest) -> HttpResponse:
    id = request.parts["id"]
    identity = identity_of(state.keys, request)
    track = track_of(state, id)
    if track is not None and identity.sees(track.key):
        entry, secrets = summary(track, opening=track.opening), track.secrets
        more = msgspec.to_builtins(detail(track))
    else:
        receipt = None if track is not None else await state.store.receipt(id)
        if receipt is None or not identity.sees(receipt.key):
            raise NoSuchExchange(f"exchange {id[:40]!r} not found: it may have expired (server.retention)")
        entry = msgspec.json.decode(receipt.summary, type=ExchangeSummary)
        more, secrets = msgspec.json.decode(receipt.value), []
    # `calls` is a number in the summary and a list in the detail: the detail must come last.
    merged = {**msgspec.to_builtins(entry), **more}
    return json_answer(state.observed.redactor.scrub(msgspec.json.encode(merged), secrets))


async def _get_bytes(state: State, request: HttpRequest) -> HttpResponse:
    shown = await asyncio.to_thread(sides, await track_with_bytes(state, request), state.observed.redactor)
    return json_answer(msgspec.json.encode(shown))


async def _get_recording(state: State, request: HttpRequest) -> HttpResponse:
    id = request.parts["id"]
    data = await asyncio.to_thread(dump, await track_with_bytes(state, request), state.observed.redactor)
    headers = {
        "cache-control": "no-store",
        "content-disposition": f'attachment; filename="{id}{ENDING}"',
    }
    return HttpResponse(data, content_type="application/octet-stream", headers=headers)


class _ReplayOptions(msgspec.Struct, frozen=True):
    to: str | None = None
    mode: Literal["live", "whole"] | None = None


async def _replay(state: State, request: HttpRequest) -> HttpResponse:
    options = _replay_options(await request.read())
    track = await track_with_bytes(state, request)
    return json_answer(await asyncio.to_thread(_replayed, track, state.observed.redactor, options))


def _replay_options(body: bytes) -> _ReplayOptions:
    try:
        options = msgspec.json.decode(body or b"{}", type=_ReplayOptions)
    except msgspec.DecodeError as error:
        raise BadRequest(f"the body of a replay request is invalid: {error}") from None
    if options.to is not None and options.to not in CLIENTS:
        raise BadRequest(f"unknown protocol {options.to[:40]!r}; choose one of {', '.join(CLIENTS)}")
    return options


def _replayed(track: Track, redactor: Redactor, options: _ReplayOptions) -> bytes:
    # Through a recording, not from the track: the result equals a replay of the file, and has no secrets.
    replayed = replay(loads(dump(track, redactor)), to=options.to, mode=options.mode)
    sent = [ClientBytes(step.t, step.data) for step in replayed.steps if step.side == "client"]
    result = {
        "client": chunks_as_text(sent),
        "same": replayed.same,
        "error": replayed.failure.message if replayed.failure else None,
        "receipts": [call_detail(receipt) for receipt in replayed.receipts],
    }
    return redactor.scrub(msgspec.json.encode(result), track.secrets)


def in_memory(state: State) -> list[Track]:
    """Exchanges that are running, or are not in the store yet."""
    return [*state.observed.tap.running.values(), *state.observed.ledger.pending.values()]


def track_of(state: State, id: str) -> Track | None:
    """The exchange, if this process still holds it in memory."""
    return (
        state.observed.tap.running.get(id)
        or state.observed.tap.ring.get(id)
        or state.observed.ledger.pending.get(id)
    )


async def track_with_bytes(state: State, request: HttpRequest) -> Track:
    """The exchange that the path names, from the ring or from the kept failures, if the client may see it."""
    id = request.parts["id"]
    identity = identity_of(state.keys, request)
    track = state.observed.tap.ring.get(id)
    if track is not None and identity.sees(track.key):
        return track
    if track is None and (kept := await _kept_failure(state, id, identity)) is not None:
        return kept
    raise NoSuchExchange(
        f"the bytes of the exchange {id[:40]!r} are not kept: each process keeps only those of its latest "
        "exchanges (server.ring) and of failed ones (server.keep_failed)"
    )


async def _kept_failure(state: State, id: str, identity: Identity) -> Track | None:
    """A file does not say whose exchange it is: the receipt does. Without one, only admins see the file."""
    if state.observed.kept is None:
        return None
    here = track_of(state, id)
    receipt = None if here is not None else await state.store.receipt(id)
    owner = here.key if here is not None else receipt.key if receipt is not None else None
    if not (identity.sees_all if owner is None else identity.sees(owner)):
        return None
    return await asyncio.to_thread(state.observed.kept.find, id)


def json_answer(body: bytes) -> HttpResponse:
    return HttpResponse(body, content_type="application/json", headers={"cache-control": "no-store"})
