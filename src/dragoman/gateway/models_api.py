"""`/v1/models`, in the protocol of the client that asks."""

from __future__ import annotations

from ..protocols.common import failures
from ..protocols.registry import served_protocols
from ..routing.router import NoRoute
from ..transport.server import Handler, HttpRequest, HttpResponse, Route, json_response
from .errors import client_of, error_response
from .state import State


def routes(state: State) -> list[Route]:
    async def every(request: HttpRequest) -> HttpResponse:
        return await _all(state, request)

    async def one(request: HttpRequest) -> HttpResponse:
        return _one(state, request)

    roots = dict.fromkeys(root for client in served_protocols() for root in client.endpoints.roots)
    handlers: dict[str, Handler] = {"/models": every, "/models/{model:.+}": one}
    return [Route("GET", root + path, handler) for root in roots for path, handler in handlers.items()]


async def _all(state: State, request: HttpRequest) -> HttpResponse:
    names = await state.catalogue.models(state.config)
    listing = client_of(request).listing
    return json_response(listing.page([listing.entry(name, name) for name in names]))


def _one(state: State, request: HttpRequest) -> HttpResponse:
    """One model. Every name exists that has a route, listed or not."""
    client = client_of(request)
    name = request.parts["model"].removeprefix(client.listing.prefix)
    try:
        state.choices(name)
    except NoRoute as error:
        return error_response(client, failures.from_request_error(error), "")
    return json_response(client.listing.entry(name, name))
