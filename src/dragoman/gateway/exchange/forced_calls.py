"""The request after rejected calls: the model must repeat them, as far as its server can be forced."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...config.providers import providers, takes_named_choice
from ...model.messages import Notice, Request
from ...protocols.base import Outgoing
from ...protocols.registry import upstream_protocol
from ...routing.router import ChosenTarget
from ...tools import reask
from ...tools.reask import Rejected


def forced_request(
    request: Request, rejected: Sequence[Rejected], choice: ChosenTarget
) -> tuple[Outgoing, Notice]:
    """The request for the target of `choice` that makes the model repeat its rejected calls."""
    name = choice.upstream.provider
    provider = providers().get(name or "")
    by_schema = provider is not None and provider.decodes_by_schema
    request, notice = reask.forced(request, rejected, by_schema=by_schema, by_name=takes_named_choice(name))
    target = msgspec.structs.replace(choice.target, open_strict=by_schema)
    return upstream_protocol(choice.upstream.protocol).write_request(request, target), notice
