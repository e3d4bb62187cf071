"""What can be noted of an exchange: both requests, both byte streams, and how it went, each with its time.

`t` is seconds since the exchange began. A call is one HTTP request to an upstream: a target that is asked
again gets another number.
"""

from __future__ import annotations

import msgspec

from ...model.events import Event, Failed
from ...protocols.common.tool_names import NameRule
from ...translation.exchange import Options


class Begun(msgspec.Struct, frozen=True, tag="begun", tag_field="is"):
    """An exchange began. Stands at the head of a recording."""

    t: float
    id: str
    at: float
    """Seconds since the epoch."""
    client: str
    """The protocol of the client's request."""
    version: str
    """Of the Dragoman that was there."""


class Read(msgspec.Struct, frozen=True, gc=False, tag="request", tag_field="is", omit_defaults=True):
    """The client's request was read."""

    t: float
    method: str
    path: str
    headers: dict[str, str]
    """Harmless ones as they came; of all others only the names."""
    body: bytes


class Setup(msgspec.Struct, frozen=True, gc=False):
    """Everything the heart needs to give an answer once more."""

    names: NameRule
    """How the client's tools are called at the upstream."""
    options: Options
    array: bool = False
    """Streamed as one JSON array, not as events."""


class Asked(msgspec.Struct, frozen=True, gc=False, tag="asked", tag_field="is", omit_defaults=True):
    """An upstream was sent a request."""

    t: float
    call: int
    upstream: str
    protocol: str
    url: str
    headers: dict[str, str]
    body: bytes
    again: bool = False
    """The same answer goes on: the upstream is asked for calls that did not fit their schema,
    or told what a search found."""
    setup: Setup | None = None


class Answered(msgspec.Struct, frozen=True, tag="answered", tag_field="is", omit_defaults=True):
    """The head of an upstream's answer came."""

    t: float
    call: int
    status: int


class Came(msgspec.Struct, frozen=True, gc=False, tag="came", tag_field="is"):
    """Bytes came from an upstream."""

    t: float
    call: int
    data: bytes


class Searched(msgspec.Struct, frozen=True, gc=False, tag="searched", tag_field="is"):
    """Dragoman ran the searches that the model asked for in a call's answer."""

    t: float
    call: int
    found: bytes
    """A JSON list of `Search`."""


class Went(msgspec.Struct, frozen=True, gc=False, tag="went", tag_field="is", omit_defaults=True):
    """Bytes were sent to the client."""

    t: float
    data: bytes
    alive: bool = False
    """A keepalive: nothing an upstream said, only the time."""


class Broke(msgspec.Struct, frozen=True, tag="broke", tag_field="is", omit_defaults=True):
    """A call failed: what it says is what the client is told, where no other call does better."""

    t: float
    call: int
    failure: Failed
    own: bool = False
    """The heart found it in the upstream's bytes itself."""


class Ended(msgspec.Struct, frozen=True, tag="ended", tag_field="is", omit_defaults=True):
    """The exchange is over."""

    t: float
    outcome: str
    status: int
    failure: Failed | None = None
    """What the client was told."""
    dropped: int = 0
    """Records that could not be kept: whoever wrote them down did not keep up."""


Record = Begun | Read | Asked | Answered | Came | Searched | Went | Broke | Ended


class Said(msgspec.Struct, frozen=True):
    """What the client is told, as events. Only for those who listen: it is not kept."""

    t: float
    events: tuple[Event, ...]
