"""Build the URL and the body of an upstream request, as the upstream's platform wants them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..config.types import UpstreamConfig
from ..protocols.base import Outgoing
from ..protocols.facts import Counting
from ..routing.router import merge_params
from .keyring import beta_features


def addressed(
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
        path, members = hosting.answering(path, members, features, upstream.fields(model))
    return upstream.url(path), msgspec.json.encode(members)


def counted(
    upstream: UpstreamConfig, model: str, outgoing: Outgoing, counting: Counting
) -> tuple[str, bytes] | None:
    """The URL and the body of a request to count tokens. None: the platform cannot count them."""
    body = counting.body(outgoing.members, model)
    path, hosting = counting.path(outgoing.path), upstream.hosting
    if hosting is not None and not hosting.count:
        return None
    if hosting is not None:
        members = body if hosting.count_members is None else outgoing.members
        path, body = hosting.counting(members, upstream.fields(model))
    return upstream.url(path), msgspec.json.encode(body)


def needed_betas(client: Mapping[str, str], outgoing: Outgoing, header: str) -> Mapping[str, str]:
    """The features that the client opted into, and those that its translated request needs."""
    if not outgoing.betas:
        return client
    return {**client, header: ",".join(filter(None, (client.get(header, ""), *outgoing.betas)))}
