"""The records of an exchange: both requests, both byte streams, failures and the end, each with its time.

`t` is in seconds since the start of the exchange. `call` numbers the HTTP requests to upstreams: a second
request to the same target gets a new number. The tags and members are the recording format: see
`docs/reference/recording-format.md`.
"""

from __future__ import annotations

import msgspec

from ...model.events import Failed
from ...protocols.common.tool_names import NameRule
from ...translation.translation import Options


class ExchangeBegan(msgspec.Struct, frozen=True, tag="begun", tag_field="is"):
    """The exchange began. The first record of a recording."""

    t: float
    id: str
    at: float
    """Seconds since the epoch."""
    client: str
    """The protocol of the client's request."""
    version: str
    """The version of Dragoman that wrote the recording."""


class ClientRequest(msgspec.Struct, frozen=True, gc=False, tag="request", tag_field="is", omit_defaults=True):
    """The client's request arrived."""

    t: float
    method: str
    path: str
    headers: dict[str, str]
    """Harmless headers unchanged; of all others only the names."""
    body: bytes


class ReplaySetup(msgspec.Struct, frozen=True, gc=False):
    """What `translation.translation` needs to replay an answer."""

    names: NameRule
    """The rule for tool names at the upstream."""
    options: Options
    array: bool = False
    """The client gets the stream in another framing than SSE: Gemini's as one JSON array, Bedrock's as an
    event stream of AWS."""


class UpstreamRequest(msgspec.Struct, frozen=True, gc=False, tag="asked", tag_field="is", omit_defaults=True):
    """A request was sent to an upstream."""

    t: float
    call: int
    upstream: str
    protocol: str
    url: str
    headers: dict[str, str]
    body: bytes
    again: bool = False
    """The same answer continues: the request asks again for calls that did not fit their schema,
    or continues with the results of a search."""
    setup: ReplaySetup | None = None


class UpstreamStatus(
    msgspec.Struct, frozen=True, gc=False, tag="answered", tag_field="is", omit_defaults=True
):
    """The HTTP status of an upstream's answer."""

    t: float
    call: int
    status: int


class UpstreamBytes(msgspec.Struct, frozen=True, gc=False, tag="came", tag_field="is"):
    """A piece of the upstream's answer."""

    t: float
    call: int
    data: bytes


class SearchResults(msgspec.Struct, frozen=True, gc=False, tag="searched", tag_field="is"):
    """Dragoman ran the searches that a call's answer asked for."""

    t: float
    call: int
    found: bytes
    """A JSON list of `Search`."""


class ClientBytes(msgspec.Struct, frozen=True, gc=False, tag="went", tag_field="is", omit_defaults=True):
    """A piece of the answer that the client got."""

    t: float
    data: bytes
    alive: bool = False
    """A keepalive of the gateway, not part of the upstream's answer."""


def without_extras(failure: Failed) -> Failed:
    """The failure as it is recorded: the upstream's bytes hold the rest."""
    return failure if failure.extras is None else msgspec.structs.replace(failure, extras=None)


class UpstreamFailure(msgspec.Struct, frozen=True, tag="broke", tag_field="is", omit_defaults=True):
    """A call failed. The client gets this failure if no other call succeeds."""

    t: float
    call: int
    failure: Failed
    own: bool = False
    """The decoder found the failure in the upstream's bytes."""


class ExchangeEnded(msgspec.Struct, frozen=True, tag="ended", tag_field="is", omit_defaults=True):
    """The last record: how the exchange ended."""

    t: float
    outcome: str
    status: int
    failure: Failed | None = None
    """The failure that the client got."""
    dropped: int = 0
    """The number of lost records, because a subscriber was too slow."""


Record = (
    ExchangeBegan
    | ClientRequest
    | UpstreamRequest
    | UpstreamStatus
    | UpstreamBytes
    | SearchResults
    | ClientBytes
    | UpstreamFailure
    | ExchangeEnded
)
