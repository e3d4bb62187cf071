"""`/v1/models` in the shape the caller understands."""

from __future__ import annotations

from ..protocols.common import failures
from ..protocols.registry import served_protocols
from ..routing.router import NoRoute
from ..transport.server import Handler, Request, Response, Route, json_response
from .errors import client_of, error_response
from .state import State


def routes(state: State) -> list[Route]:
    async def every(request: Request) -> Response:
        return await _all(state, request)

    async def one(request: Request) -> Response:
        return _one(state, request)

    roots = dict.fromkeys(root for client in served_protocols() for root in client.endpoints.roots)
    handlers: dict[str, Handler] = {"/models": every, "/models/{model:.+}": one}
    return [Route("GET", root + path, handler) for root in roots for path, handler in handlers.items()]


async def _all(state: State, request: Request) -> Response:
    """All models clients may name."""
    names = await state.catalogue.models(state.config)
    listing = client_of(request).listing
    return json_response(listing.page([listing.entry(name, name) for name in names]))


def _one(state: State, request: Request) -> Response:
    """The model that is asked for: there is one wherever a request for it would go somewhere."""
    client = client_of(request)
    name = request.parts["model"].removeprefix(client.listing.prefix)
    try:
        state.choices(name)
    except NoRoute as error:
        return error_response(client, failures.from_request_error(error), "")
    return json_response(client.listing.entry(name, name))
