"""What can be asked about exchanges: a list, one receipt, its bytes, and a stream of what happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from ..model.errors import BadRequest, DragomanError, Fault
from ..observe.receipts import Summary, call_detail, detail, find, parse_query, summary
from ..observe.tap import ClientBytes, Redactor, Track
from ..protocols.common import failures
from ..protocols.registry import CLIENTS
from ..recording import ENDING, dump, loads, replay
from ..transport.server import Answer, Handler, Request, Response, Route
from .errors import client_of, error_response
from .exchange_bytes import chunks_shown, sides
from .live_feed import live
from .state import State

_Asked = Callable[[State, Request], Awaitable[Answer]]


class NoSuchExchange(DragomanError):
    """It is not, or not any more, to be had."""

    status = 404
    fault: Fault = "client"


def routes(state: State) -> list[Route]:
    return [
        Route("GET", "/exchanges", _told(state, _list)),
        Route("GET", "/exchanges/live", _told(state, live)),
        Route("GET", "/exchanges/{id}", _told(state, _one)),
        Route("GET", "/exchanges/{id}/bytes", _told(state, _bytes)),
        Route("GET", "/exchanges/{id}/recording", _told(state, _recording)),
        Route("POST", "/exchanges/{id}/replay", _told(state, _replay)),
    ]


def _told(state: State, asked: _Asked) -> Handler:
    """What cannot be had is told in one sentence."""

    async def handle(request: Request) -> Answer:
        try:
            return await asked(state, request)
        except DragomanError as error:
            return error_response(client_of(request), failures.from_request_error(error), "")

    return handle


async def _list(state: State, request: Request) -> Response:
    page = await find(parse_query(request.query), in_memory(state), state.store)
    shown = [msgspec.structs.replace(said, recorded=said.id in state.tap.ring) for said in page.exchanges]
    page = msgspec.structs.replace(page, exchanges=await asyncio.to_thread(state.prices.added, shown))
    return _json(state.redactor.scrub(msgspec.json.encode(page)))


async def _one(state: State, request: Request) -> Response:
    id = request.parts["id"]
    track = track_of(state, id)
    if track is not None:
        said, more, own = summary(track), msgspec.to_builtins(detail(track)), track.secrets
    else:
        receipt = await state.store.receipt(id)
        if receipt is None:
            raise NoSuchExchange(f"there is no exchange {id[:40]!r}: it is not kept any more, or never was")
        said = msgspec.json.decode(receipt.summary, type=Summary)
        more, own = msgspec.json.decode(receipt.value), []
    (said,) = await asyncio.to_thread(state.prices.added, [said])
    # A receipt's `calls` are the calls themselves, not how many.
    merged = {**msgspec.to_builtins(said), **more}
    return _json(state.redactor.scrub(msgspec.json.encode(merged), own))


async def _bytes(state: State, request: Request) -> Response:
    shown = await asyncio.to_thread(sides, in_ring(state, request.parts["id"]), state.redactor)
    return _json(msgspec.json.encode(shown))


async def _recording(state: State, request: Request) -> Response:
    id = request.parts["id"]
    data = await asyncio.to_thread(dump, in_ring(state, id), state.redactor)
    headers = {
        "cache-control": "no-store",
        "content-disposition": f'attachment; filename="{id}{ENDING}"',
    }
    return Response(data, content_type="application/octet-stream", headers=headers)


class _ReplayWish(msgspec.Struct, frozen=True):
    to: str | None = None
    mode: Literal["live", "whole"] | None = None


async def _replay(state: State, request: Request) -> Response:
    id = request.parts["id"]
    wish = _wish(await request.read())
    track = in_ring(state, id)
    return _json(await asyncio.to_thread(_replayed, track, state.redactor, wish))


def _wish(body: bytes) -> _ReplayWish:
    try:
        wish = msgspec.json.decode(body or b"{}", type=_ReplayWish)
    except msgspec.DecodeError as error:
        raise BadRequest(f"what to replay cannot be read: {error}") from None
    if wish.to is not None and wish.to not in CLIENTS:
        raise BadRequest(f"there is no protocol {wish.to[:40]!r}; there are {', '.join(CLIENTS)}")
    return wish


def _replayed(track: Track, redactor: Redactor, wish: _ReplayWish) -> bytes:
    # From the recording, not from the track: so it shows what a file of it would, and holds no secrets.
    played = replay(loads(dump(track, redactor)), to=wish.to, mode=wish.mode)
    went = [ClientBytes(step.t, step.data) for step in played.steps if step.side == "client"]
    said = {
        "client": chunks_shown(went),
        "same": played.same,
        "error": played.failure.message if played.failure else None,
        "receipts": [call_detail(receipt) for receipt in played.receipts],
    }
    return redactor.scrub(msgspec.json.encode(said), track.secrets)


def in_memory(state: State) -> list[Track]:
    """The exchanges this process knows better than the store does."""
    return [*state.tap.running.values(), *state.ledger.pending.values()]


def track_of(state: State, id: str) -> Track | None:
    """Whatever this process still has of an exchange."""
    return state.tap.running.get(id) or state.tap.ring.get(id) or state.ledger.pending.get(id)


def in_ring(state: State, id: str) -> Track:
    track = state.tap.ring.get(id)
    if track is None:
        raise NoSuchExchange(
            f"the bytes of the exchange {id[:40]!r} are not in memory: each process keeps its last ones, as "
            "many as server.ring holds"
        )
    return track


def _json(body: bytes) -> Response:
    return Response(body, content_type="application/json", headers={"cache-control": "no-store"})
