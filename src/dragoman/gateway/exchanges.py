"""What can be asked about exchanges: a list, one receipt, its bytes, and a stream of what happens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from ..errors import DragomanError, Fault
from ..receipts import Summary, asked_for, detail, find, summary
from ..tap import Track
from .errors import client_of, error_response, from_exception
from .live import live
from .sides import sides
from .state import STATE, State

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class NoSuchExchange(DragomanError):
    """It is not, or not any more, to be had."""

    status = 404
    fault: Fault = "client"


def routes() -> list[web.RouteDef]:
    return [
        web.get("/exchanges", _told(_list)),
        web.get("/exchanges/live", live),
        web.get("/exchanges/{id}", _told(_one)),
        web.get("/exchanges/{id}/bytes", _told(_bytes)),
    ]


def _told(handler: Handler) -> Handler:
    """What cannot be had is told in one sentence."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except DragomanError as error:
            return error_response(client_of(request), from_exception(error), "")

    return handle


async def _list(request: web.Request) -> web.Response:
    state = request.app[STATE]
    page = await find(asked_for(request.query), in_memory(state), state.store)
    shown = [msgspec.structs.replace(said, recorded=said.id in state.tap.ring) for said in page.exchanges]
    page = msgspec.structs.replace(page, exchanges=shown)
    return _json(state.redactor.scrub(msgspec.json.encode(page)))


async def _one(request: web.Request) -> web.Response:
    state, id = request.app[STATE], request.match_info["id"]
    track = track_of(state, id)
    if track is not None:
        said = _merged(msgspec.to_builtins(summary(track)), msgspec.to_builtins(detail(track)))
        return _json(state.redactor.scrub(msgspec.json.encode(said), track.secrets))
    receipt = await state.store.receipt(id)
    if receipt is None:
        raise NoSuchExchange(f"there is no exchange {id[:40]!r}: it is not kept any more, or never was")
    # The summary that was written may lack what this version knows of: it is read by its type.
    kept = msgspec.to_builtins(msgspec.json.decode(receipt.summary, type=Summary))
    return _json(msgspec.json.encode(_merged(kept, msgspec.json.decode(receipt.value))))


async def _bytes(request: web.Request) -> web.Response:
    state, id = request.app[STATE], request.match_info["id"]
    return _json(msgspec.json.encode(sides(in_ring(state, id), state.redactor)))


def in_memory(state: State) -> list[Track]:
    """The exchanges this process knows better than the store does."""
    return [*state.tap.running.values(), *state.ledger.waiting.values()]


def track_of(state: State, id: str) -> Track | None:
    """Whatever this process still has of an exchange."""
    return state.tap.running.get(id) or state.tap.ring.get(id) or state.ledger.waiting.get(id)


def in_ring(state: State, id: str) -> Track:
    track = state.tap.ring.get(id)
    if track is None:
        raise NoSuchExchange(
            f"the bytes of the exchange {id[:40]!r} are not in memory: each process keeps its last ones, as "
            "many as server.ring holds"
        )
    return track


def _merged(said: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """A receipt's `calls` are the calls themselves, not how many."""
    return {**said, **more}


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json", headers={"cache-control": "no-store"})
