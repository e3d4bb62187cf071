"""What a protocol is to the rest of the house: one record, made of the pieces in its folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec

from ..model.events import Event, Failed
from ..model.messages import Notice, Request
from ..wire.frames import Frame
from .common.call_ids import IdRule
from .common.collect import Answer
from .common.fields import Body
from .common.tool_names import NameRule, ToolNames
from .facts import (
    BEARER,
    Address,
    Auth,
    Compaction,
    Counting,
    Endpoints,
    ModelListFormat,
    OutputLimiter,
    ReasoningReplay,
    Sdk,
    Server,
    SocketFormat,
    ToolForm,
)


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the upstream a request is written for, beyond its protocol. All of it is data."""

    model: str
    issuer: str = ""
    """The upstream's name: opaque reasoning goes back to the issuer it came from."""
    ids: IdRule | None = None
    """Where an upstream is pickier about call ids than its protocol (Mistral)."""
    anthropic_version: str = "2023-06-01"
    default_max_tokens: int = 32_000
    """For Anthropic, where `max_tokens` must be said and the client did not."""
    reasoning_field: str | None = None
    """The Chat field in which this upstream wants its own reasoning echoed (`reasoning_content`, …)."""
    max_tokens_field: str = "max_completion_tokens"
    """The Chat field for the bound on output: many servers know only `max_tokens`."""
    chat_compatible: bool = False
    """A Chat server that is not OpenAI's own: no `developer` role, no freeform tools, no cache marks,
    and content that is all text goes as one string (DeepSeek takes no arrays)."""
    compacts: bool = False
    """The upstream compacts conversations itself (`compaction_trigger`)."""
    strict: bool = False
    """Refuse what would otherwise be dropped with a notice."""


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """A request written for an upstream, and what the answer's translation must know of it."""

    members: dict[str, Any]
    """The members of the body. A member may be `msgspec.Raw`: JSON that is sent as it is."""
    path: str
    """Below the upstream's root: `/v1/messages`."""
    names: ToolNames
    notices: tuple[Notice, ...] = ()
    stop: tuple[str, ...] = ()
    """Stop sequences the upstream does not know: cut the answer here instead."""

    def encoded(self) -> bytes:
        """The body as it is sent."""
        return msgspec.json.encode(self.members)

    @property
    def body(self) -> dict[str, Any]:
        """The body as the upstream reads it."""
        return msgspec.json.decode(self.encoded())


class Decoder(Protocol):
    """An upstream's frames to events. A body that is not streamed is a stream of one frame."""

    clean: bool
    """False once a frame was seen that a client of the same protocol must not get as it is."""
    ending: bool
    """The upstream said the answer is over, but more (usage) may follow before `End` is given."""

    def frame(self, frame: Frame) -> list[Event]: ...

    def close(self) -> list[Event]:
        """The upstream's stream is over: an honest `End` or `Failed`, unless one was given before."""
        ...


class Encoder(Protocol):
    """Events to a client's bytes: a stream's frames as they come, or one body at the end."""

    def encode(self, events: list[Event]) -> bytes: ...

    def verbatim(self, frame: Frame, events: list[Event]) -> bytes:
        """The client gets `frame` as the upstream sent it, and not what `encode` would write for `events`.

        Gives the frame's bytes, and goes on as if the events had been encoded.
        """
        ...


Freeform = Literal["custom", "function"]
"""A call of a freeform tool: in a form of its own, or as a function whose arguments are the raw text."""


class AnswerContext(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer needs that its upstream may not have given. Made outside: the core has no clock."""

    id: str
    """Letters and digits: the seed of every id that is made up for this answer."""
    created: int
    model: str
    include_usage: bool = True
    freeform: Freeform = "custom"
    """The form of calls of freeform tools, on a wire that has two."""
    echo: dict[str, Any] = {}
    """Settings of the request that the answer repeats (`ClientProtocol.echo`)."""
    elapsed: Callable[[], float] | None = None
    """Seconds since `created`. None: unknown, as where an answer is translated after the fact."""


def no_echo(request: Request) -> dict[str, Any]:
    """For a protocol whose answers do not repeat the request's settings."""
    return {}


def no_headers(target: Target) -> dict[str, str]:
    """For a protocol whose requests need none."""
    return {}


class ClientProtocol(msgspec.Struct, frozen=True, kw_only=True):
    """One wire format as a client speaks it: its requests are read, its answers written."""

    name: str
    ids: IdRule
    names: NameRule
    serial: bool
    """Blocks come one after another: what interleaves upstream must be put in line."""
    freeform: Freeform = "custom"
    """The form in which its clients take calls of freeform tools, unless the config says otherwise."""
    whole: bool = False
    """Its clients take a call's first piece of arguments for all of them: give each call in one piece."""
    read_request: Callable[[Body, str], Request]
    """Takes the body and the path it was posted to: Gemini says the model's name only there."""
    stream_encoder: Callable[[AnswerContext], Encoder]
    render: Callable[[Answer, AnswerContext], bytes]
    """A whole answer's body."""
    echo: Callable[[Request], dict[str, Any]] = no_echo
    """The settings of a request that its answers repeat."""
    error_body: Callable[[Failed, str], bytes]
    """The body of an HTTP error answer (failure, request id)."""
    keepalive: bytes
    """What may be sent to keep the connection alive; empty where the SDK survives nothing."""
    early_keepalive: bytes
    """The same before the answer's own beginning: no event, so that none comes before the first."""
    endpoints: Endpoints
    auth: Auth = BEARER
    listing: ModelListFormat = ModelListFormat()
    compaction: Compaction | None = None
    """None: clients of this protocol do not ask for compaction."""
    counting: Counting | None = None
    """None: no upstream of this protocol counts tokens."""
    reasoning: ReasoningReplay = ReasoningReplay()
    beta_header: str = ""
    """The header in which clients opt into features. An upstream of the same protocol gets it too."""
    open_headers: tuple[str, ...] = ()
    """Headers of its own that hold no secret and may be shown."""
    socket_format: SocketFormat | None = None
    """How its clients ask over a WebSocket. None: they do not."""
    keeps_responses: bool = False
    """Clients go on from an earlier response by its id, so responses are kept (`store/responses.py`)."""
    operation: str = "chat"
    """What OpenTelemetry's conventions call a request for an answer."""
    asked_in: str = ""
    """A reply protocol has no requests of its own: its clients ask in those of this protocol."""


class WireProtocol(ClientProtocol, frozen=True, kw_only=True):
    """One wire format, as both sides: a client that speaks it, an upstream that speaks it."""

    write_request: Callable[[Request, Target], Outgoing]
    decoder: Callable[[str, bool], Decoder]
    """Takes the issuer of the answer's seals, and whether to watch for frames that may pass verbatim."""
    address: Address
    limit_output: OutputLimiter
    headers: Callable[[Target], dict[str, str]] = no_headers
    """The headers that a request for an upstream needs beside its key."""
    upstream_defaults: dict[str, Any] = {}
    """What is usual at upstreams of this protocol: keys of `[upstreams.NAME]`."""
    tool_form: ToolForm
    sdk: Sdk
    server: Server = Server()
