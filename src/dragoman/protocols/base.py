"""The record that describes a protocol to all other packages. Each protocol's folder builds one."""

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
    Auth,
    BaseUrlRule,
    Compaction,
    Counting,
    Endpoints,
    FieldNames,
    ModelListFormat,
    OutputLimiter,
    PromptForm,
    ReasoningReplay,
    SdkObjects,
    Server,
    SocketFormat,
    ToolForm,
)
from .model_facts import ModelFacts, known_facts


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about the upstream that a request goes to, beyond its protocol. They come from the config."""

    model: str
    issuer: str = ""
    """The upstream's name. Only the upstream that issued a seal gets it back."""
    ids: IdRule | None = None
    """The rule for call ids, if the upstream is stricter than its protocol (Mistral: nine characters)."""
    anthropic_version: str = "2023-06-01"
    default_max_tokens: int = 32_000
    """`max_tokens` for Anthropic if the client sets no limit: Anthropic requires it."""
    reasoning_field: str | None = None
    """The Chat field in which this upstream wants its own reasoning back. DeepSeek answers 400 without
    `reasoning_content` in turns with tool calls."""
    max_tokens_field: str = "max_completion_tokens"
    """The Chat field for the output limit. Many servers know only `max_tokens`."""
    open_strict: bool = False
    """May a strict tool have a schema that leaves objects open? OpenAI refuses that."""
    chat_compatible: bool = False
    """A Chat server that is not OpenAI's own: no `developer` role, no freeform tools, no cache breakpoints.
    Content without media is sent as one string, because DeepSeek accepts no arrays."""
    compacts: bool = False
    """The upstream compacts conversations itself (`compaction_trigger`)."""
    cache_marks: bool | Literal["blocks"] = False
    """Mark the stable part of a prompt for the cache if the client marks nothing (Anthropic, Bedrock).
    "blocks": the upstream takes marks on content blocks, and perhaps none for the whole request."""
    strict: bool = False
    """Refuse a request if a part of it would be dropped with a notice."""
    facts: ModelFacts | None = None
    """Facts about the model, from the config or from an earlier refusal. None: only the name is known."""

    @property
    def marks_prompts(self) -> bool:
        """May a prompt have marks for the cache? A model without a cache refuses them."""
        return bool(self.cache_marks) and self.takes.caches is not False

    @property
    def takes(self) -> ModelFacts:
        """The features that the model supports."""
        return known_facts(self.model) if self.facts is None else self.facts


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """A request in the upstream's protocol, and the facts that the translation of its answer needs."""

    members: dict[str, Any]
    """The members of the body. A member may be `msgspec.Raw`: JSON that is copied into the body."""
    path: str
    """The path below the upstream's root: `/v1/messages`."""
    names: ToolNames
    notices: tuple[Notice, ...] = ()
    stop: tuple[str, ...] = ()
    """Stop sequences that the upstream does not support. The translation ends the answer there."""
    betas: tuple[str, ...] = ()
    """Beta features that the request must name in a header (`ClientProtocol.beta_header`)."""

    def encoded(self) -> bytes:
        return msgspec.json.encode(self.members)

    @property
    def body(self) -> dict[str, Any]:
        """The body, fully decoded."""
        return msgspec.json.decode(self.encoded())


class Decoder(Protocol):
    """Turns an upstream's frames into events. A body that is not streamed is a stream of one frame."""

    def frame(self, frame: Frame) -> list[Event]: ...

    def close(self) -> list[Event]:
        """The upstream's stream ended. Return an `End` or a `Failed`, unless one was returned before."""
        ...


class Encoder(Protocol):
    """Turns events into a client's bytes: frames of a stream, or one body at the end."""

    def encode(self, events: list[Event]) -> bytes:
        """The bytes for the events of one frame, or of the end of the stream."""
        ...


Freeform = Literal["custom", "function"]
"""How a client gets a freeform call: as a `custom` call, or as a function with raw text as arguments."""


class AnswerContext(msgspec.Struct, frozen=True, kw_only=True):
    """What an encoder needs besides events. The caller provides it, because the core has no clock."""

    id: str
    """The seed of all ids that are generated for this answer: letters and digits."""
    created: int
    model: str
    include_usage: bool = True
    freeform: Freeform = "custom"
    """The form of freeform calls, in a protocol that has two forms (Chat)."""
    echo: dict[str, Any] = {}
    """Request settings that the answer repeats (`ClientProtocol.echo`)."""
    elapsed: Callable[[], float] | None = None
    """Seconds since `created`. None: unknown, for example when a stored answer is translated."""
    on_response: Callable[[dict[str, Any]], None] | None = None
    """Called with the whole response that ends an answer, if clients may continue from it
    (`ClientProtocol.keeps_responses`)."""


def no_echo(request: Request) -> dict[str, Any]:
    """`ClientProtocol.echo` for a protocol whose answers do not repeat request settings."""
    return {}


def no_headers(target: Target) -> dict[str, str]:
    """`WireProtocol.headers` for a protocol without required headers."""
    return {}


class BaseProtocol(msgspec.Struct, frozen=True, kw_only=True):
    """What a protocol has on either side."""

    name: str
    ids: IdRule
    names: NameRule
    fields: FieldNames = {}
    """The fields of its requests. The inspector shows the change of each (`translation/field_changes.py`)."""
    prompt: PromptForm = PromptForm()
    """Where its requests hold names of tools and cache marks."""
    auth: Auth = BEARER
    listing: ModelListFormat = ModelListFormat()
    compaction: Compaction | None = None
    """None: clients of this protocol do not ask for compaction."""
    counting: Counting | None = None
    """None: the protocol has no endpoint that counts tokens."""
    beta_header: str = ""
    """The header in which clients opt into features. Upstreams of the same protocol get it too."""
    open_headers: tuple[str, ...] = ()
    """Headers of this protocol without secrets: logs and recordings may show them."""


class ClientProtocol(BaseProtocol, frozen=True, kw_only=True):
    """A protocol on the client's side: Dragoman reads its requests and writes its answers."""

    serial: bool
    """Its clients need one block at a time (`translation/block_order.py`)."""
    freeform: Freeform = "custom"
    """The form of freeform calls for its clients, unless the config sets another."""
    whole: bool = False
    """Its clients need each call in one piece: Cursor treats the first fragment as all arguments."""
    read_request: Callable[[Body, str], Request]
    """Takes the body and the path of the request. Gemini has the model's name only in the path."""
    stream_encoder: Callable[[AnswerContext], Encoder]
    render: Callable[[Answer, AnswerContext], bytes]
    """Writes a whole answer as one body."""
    echo: Callable[[Request], dict[str, Any]] = no_echo
    """The request settings that the answer repeats."""
    error_body: Callable[[Failed, str], bytes]
    """The body of an HTTP error answer (failure, request id)."""
    keepalive: bytes
    """A frame that keeps the connection alive. Empty for Gemini, whose SDK accepts none."""
    early_keepalive: bytes
    """The keepalive before the first event: a comment, because no event may come before the first one."""
    endpoints: Endpoints
    carries_searches: bool = False
    """Its clients send back the web searches that Dragoman ran for them, in blocks or items for searches."""
    reasoning: ReasoningReplay = ReasoningReplay()
    socket_format: SocketFormat | None = None
    """The message format on a WebSocket. None: the protocol has no WebSocket."""
    keeps_responses: bool = False
    """Clients continue from an earlier response by its id, so `store/responses.py` keeps responses."""
    operation: str = "chat"
    """The name of a request for an answer in OpenTelemetry's conventions (`gen_ai.operation.name`)."""
    asked_in: str = ""
    """The protocol of the requests, for a reply format without requests of its own (`cursor`)."""


class UpstreamProtocol(BaseProtocol, frozen=True, kw_only=True):
    """A protocol on the upstream's side only: Dragoman writes its requests and reads its answers.

    `WireProtocol` has the same fields, and explains them. It cannot inherit them: a struct has one base.
    """

    write_request: Callable[[Request, Target], Outgoing]
    decoder: Callable[[str, bool], Decoder]
    address: BaseUrlRule
    headers: Callable[[Target], dict[str, str]] = no_headers
    upstream_defaults: dict[str, Any] = {}


class WireProtocol(ClientProtocol, frozen=True, kw_only=True):
    """A protocol on both sides: clients and upstreams speak it."""

    write_request: Callable[[Request, Target], Outgoing]
    decoder: Callable[[str, bool], Decoder]
    """Takes the issuer of the answer's seals, and whether the client speaks the protocol too. Then the events
    keep the members that they do not understand (`extras`)."""
    address: BaseUrlRule
    limit_output: OutputLimiter
    headers: Callable[[Target], dict[str, str]] = no_headers
    """The headers that a request needs besides the credential."""
    upstream_defaults: dict[str, Any] = {}
    """Defaults for upstreams of this protocol: keys of `[upstreams.NAME]`."""
    tool_form: ToolForm
    sdk: SdkObjects
    server: Server = Server()
