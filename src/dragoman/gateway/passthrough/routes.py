"""Route requests of other endpoints to upstreams that speak the client's protocol."""

from __future__ import annotations

from ...config.types import UpstreamConfig
from ...model.errors import DragomanError, Fault
from ...protocols.base import ClientProtocol
from ...protocols.facts import OtherEndpoint
from ...protocols.registry import PROTOCOLS, upstream_protocol
from ...routing.router import ChosenTarget, NoRoute
from ..state import State


class NotPassed(DragomanError):
    """No upstream gets this request."""

    status = 404
    fault: Fault = "client"


def speaks(upstream: UpstreamConfig, client: ClientProtocol) -> bool:
    """Does the upstream have the client's endpoints? A cloud may have none, or at paths of its own."""
    if upstream.hosting is not None and not upstream.hosting.others:
        return False
    return upstream.protocol in _protocols(client)


def choices(
    state: State, client: ClientProtocol, endpoint: OtherEndpoint, model: str
) -> tuple[ChosenTarget, ...]:
    """The targets, in the order to try them. Raises `NotPassed` if there is none.

    A model goes where its route sends it. A request without a model, or with one that has no route, goes to
    the first upstream whose `other_endpoints` name the endpoint.
    """
    if model:
        try:
            routed = state.upstreams.choices(model)
        except NoRoute as error:
            if found := _declared(state, client, endpoint, model):
                return found
            raise NotPassed(error.message) from None
        if found := tuple(choice for choice in routed if speaks(choice.upstream, client)):
            return found
        raise NotPassed(_routed_elsewhere(state, client, model, routed[0].upstream))
    if found := _declared(state, client, endpoint, ""):
        return found
    raise NotPassed(_no_upstream(state, client, endpoint))


def _declared(
    state: State, client: ClientProtocol, endpoint: OtherEndpoint, model: str
) -> tuple[ChosenTarget, ...]:
    """The first upstream that has the endpoint. Only one: files and batches exist at one upstream only."""
    for upstream in state.config.upstreams.values():
        if endpoint.name in upstream.other_endpoints and speaks(upstream, client):
            why = f'the first upstream with "{endpoint.name}" in other_endpoints'
            key = f"{upstream.name}/{model or endpoint.name}"
            target = upstream.target(model)
            return (ChosenTarget(upstream=upstream, model=model, params={}, why=why, key=key, target=target),)
    return ()


def _protocols(client: ClientProtocol) -> list[str]:
    """The protocols whose upstreams have the client's endpoints: its own, and those of its family."""
    family = upstream_protocol(client.name).address.family
    return [
        name
        for name, record in PROTOCOLS.items()
        if name == client.name or (family and record.address.family == family)
    ]


def _speakers(state: State, client: ClientProtocol) -> list[str]:
    return [upstream.name for upstream in state.config.upstreams.values() if speaks(upstream, client)]


def _routed_elsewhere(state: State, client: ClientProtocol, model: str, upstream: UpstreamConfig) -> str:
    fitting, protocols = _speakers(state, client), " or ".join(_protocols(client))
    why = f"it speaks {upstream.protocol}"
    if upstream.protocol in _protocols(client):
        why = "Dragoman asks this cloud for answers only"
    advice = f"send it to {' or '.join(fitting)}" if fitting else f"add an upstream that speaks {protocols}"
    return (
        f'this endpoint is passed on unchanged, and the model "{model}" goes to {upstream.name}, which does '
        f"not have it ({why}); {advice} with a [[routes]] entry for this model"
    )


def _no_upstream(state: State, client: ClientProtocol, endpoint: OtherEndpoint) -> str:
    fitting, protocols = _speakers(state, client), " or ".join(_protocols(client))
    if not fitting:
        return f"this endpoint is passed on unchanged; add an upstream that speaks {protocols}"
    return (
        f"this request names no model, so no route says where it goes; set other_endpoints = "
        f'["{endpoint.name}"] for one of these upstreams: {", ".join(fitting)}'
    )
