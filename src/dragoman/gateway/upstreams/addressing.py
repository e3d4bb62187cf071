"""Build the URL and the body of an upstream request, as the upstream's platform wants them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...config.types import UpstreamConfig
from ...model.messages import Notice
from ...protocols.base import Outgoing, Target
from ...protocols.facts import Counting
from ...routing.router import merge_params
from .keyring import beta_features


def build_request(
    upstream: UpstreamConfig,
    model: str,
    outgoing: Outgoing,
    params: Mapping[str, Any],
    betas: Mapping[str, str],
) -> tuple[str, bytes]:
    """The URL and the body of a request for an answer."""
    members = merge_params(outgoing.members, params) if params else outgoing.members
    path, hosting = outgoing.path, upstream.hosting
    if hosting is not None:
        features = beta_features(upstream, betas)
        path, members = hosting.answer_request(path, members, features, upstream.fields(model))
    return upstream.url(path), msgspec.json.encode(members)


def build_count_request(
    upstream: UpstreamConfig, model: str, outgoing: Outgoing, counting: Counting
) -> tuple[str, bytes] | None:
    """The URL and the body of a request to count tokens. None: the platform cannot count them."""
    body = counting.body(outgoing.members, model)
    path, hosting = counting.path(outgoing.path), upstream.hosting
    if hosting is not None and not hosting.count:
        return None
    if hosting is not None:
        members = body if hosting.count_members is None else outgoing.members
        path, body = hosting.count_request(members, upstream.fields(model))
    return upstream.url(path), msgspec.json.encode(body)


def needed_betas(
    client: Mapping[str, str], outgoing: Outgoing, header: str, target: Target
) -> Mapping[str, str]:
    """The features that the client opted into, and those that its translated request needs.

    Those that the upstream has refused for this model are left out, unless nothing may be dropped (`strict`).
    """
    refused = () if target.strict else target.takes.refused_betas
    if not (outgoing.betas or refused):
        return client
    names = _wanted_betas(client, outgoing, header)
    kept = [] if "*" in refused else [name for name in names if name not in refused]
    return {**client, header: ",".join(kept)}


def dropped_betas(
    client: Mapping[str, str], outgoing: Outgoing, header: str, target: Target
) -> tuple[Notice, ...]:
    """The notice of features that are left out."""
    if not target.takes.refused_betas:
        return ()
    kept = needed_betas(client, outgoing, header, target).get(header, "").split(",")
    dropped = [name for name in _wanted_betas(client, outgoing, header) if name not in kept]
    if not dropped:
        return ()
    return (Notice("betas-dropped", header, f"the upstream refuses beta features: {', '.join(dropped)}"),)


def _wanted_betas(client: Mapping[str, str], outgoing: Outgoing, header: str) -> list[str]:
    names = [*client.get(header, "").split(","), *outgoing.betas]
    return [name for name in map(str.strip, names) if name]
