"""`/v1/models`, in the protocol of the client that asks."""

from __future__ import annotations

from ...access.identity import Identity, ModelNotAllowed
from ...protocols.common import failures
from ...protocols.registry import served_protocols
from ...routing.router import NoRoute
from ...transport.server import Handler, HttpRequest, HttpResponse, Route, json_response
from ..caller import identity_of
from ..errors import client_of, error_response
from ..state import State


def routes(state: State) -> list[Route]:
    async def list_models(request: HttpRequest) -> HttpResponse:
        return await _list_models(state, request)

    async def get_model(request: HttpRequest) -> HttpResponse:
        return _get_model(state, request)

    roots = dict.fromkeys(root for client in served_protocols() for root in client.endpoints.roots)
    handlers: dict[str, Handler] = {"/models": list_models, "/models/{model:.+}": get_model}
    return [Route("GET", root + path, handler) for root in roots for path, handler in handlers.items()]


async def _list_models(state: State, request: HttpRequest) -> HttpResponse:
    identity = identity_of(state.keys, request)
    names = await state.upstreams.catalogue.models(state.config)
    if identity.models:
        names = dict.fromkeys(filter(None, (_allowed_name(state, identity, name) for name in names)))
    listing = client_of(request).listing
    return json_response(listing.page([listing.entry(name, name) for name in names]))


def _allowed_name(state: State, identity: Identity, name: str) -> str | None:
    """The name by which the key may use a model: `name` itself, or the name without its upstream."""
    if identity.may_use(name):
        return name
    short = name.partition("/")[2]
    if not short or not identity.may_use(short):
        return None
    try:
        return short if state.upstreams.choices(short)[0].key == name else None
    except NoRoute:
        return None


def _get_model(state: State, request: HttpRequest) -> HttpResponse:
    """One model. Every name exists that has a route, listed or not."""
    client = client_of(request)
    name = request.parts["model"].removeprefix(client.listing.prefix)
    try:
        identity_of(state.keys, request).check_model(name)
        state.upstreams.choices(name)
    except (NoRoute, ModelNotAllowed) as error:
        return error_response(client, failures.from_request_error(error), "")
    return json_response(client.listing.entry(name, name))
