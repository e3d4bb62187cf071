"""The routes of the other endpoints of all protocols (`passing.py`)."""

from __future__ import annotations

from ...protocols.base import ClientProtocol
from ...protocols.facts import OtherEndpoint
from ...protocols.registry import served_protocols
from ...transport.server import Handler, HttpAnswer, HttpRequest, Route
from ..errors import client_of
from ..exchange.exchange import run_exchange
from ..state import State
from .passing import PassJob

_Served = tuple[ClientProtocol, OtherEndpoint, str]
"""A protocol, its endpoint, and the root of the path at which the gateway serves it."""


def routes(state: State) -> list[Route]:
    """The other endpoints of all protocols. Protocols may share a path: headers tell them apart."""
    found: dict[tuple[str, str], list[_Served]] = {}
    for client in served_protocols():
        at = client.endpoints
        for endpoint in at.others:
            for root in at.roots:
                served = (client, endpoint, endpoint.before + root)
                for method in endpoint.methods:
                    found.setdefault((method, endpoint.before + root + endpoint.path), []).append(served)
    return [Route(method, path, _handler(state, served)) for (method, path), served in found.items()]


def _handler(state: State, served: list[_Served]) -> Handler:
    async def answer(http: HttpRequest) -> HttpAnswer:
        name = client_of(http).name if len(served) > 1 else ""
        client, endpoint, root = next((one for one in served if one[0].name == name), served[0])
        return await run_exchange(state, client, http, lambda exchange: PassJob(exchange, endpoint, root))

    return answer
