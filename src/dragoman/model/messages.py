"""The neutral request: a conversation, its tools and its settings, whatever wire it came over.

Messages keep the granularity of the wire they came from (one Chat message, one Responses item): merging
is done only when writing, so nothing is lost by reading. Whatever a protocol says that has no neutral
meaning stays in `raw` (the thing exactly as it came) or `extras` (unknown fields) and goes back to the
same protocol only. All of it is frozen: to change something, build a new one without `raw`. Frozen values
hold no reference cycles, so the garbage collector need not track them (`gc=False`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

Role = Literal["system", "developer", "user", "assistant"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

_decode_schema = msgspec.json.Decoder(dict[str, Any]).decode


class Raw(msgspec.Struct, frozen=True, gc=False):
    """Something exactly as it stood on the wire of `protocol`."""

    protocol: str
    held: Any = msgspec.field(name="value")
    """The value, or the list in which it stands."""
    wrapped: bool = False
    """A message that holds ids or reasoning which Dragoman wrapped for the client, or other members that
    no upstream may get: the writer has to look into it. A Responses request says it of all its items."""
    at: int | None = None
    """The place of the value in a list that is held. Most requests are written for another protocol, where
    nobody asks for a message as it came, so the list is cut into its items only when somebody does."""

    @property
    def value(self) -> Any:
        """A JSON value. It may be `msgspec.Raw`, or an object with such members: JSON that is not decoded."""
        return self.held if self.at is None else self.held[self.at]

    @property
    def parsed(self) -> Any:
        """The JSON value, decoded throughout."""
        return msgspec.json.decode(msgspec.json.encode(self.value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Raw) and (self.protocol, self.parsed) == (other.protocol, other.parsed)

    __hash__ = None  # type: ignore[assignment]


class Seal(msgspec.Struct, frozen=True, gc=False):
    """Opaque reasoning: goes back to its issuer unchanged, and to nobody else.

    `protocol` is the wire it belongs to; `issuer` is the upstream that made it, where that is known.
    """

    protocol: str
    data: str
    id: str | None = None
    """OpenAI Responses names its reasoning items (`rs_…`)."""
    issuer: str = ""
    redacted: bool = False
    """Anthropic `redacted_thinking`: the data is the whole block."""


class Cache(msgspec.Struct, frozen=True, gc=False):
    """A prompt-cache breakpoint after the part that carries it."""

    ttl: str | None = None


class Citation(msgspec.Struct, frozen=True, gc=False):
    """A source for a stretch of text. `raw` keeps kinds that are not plain web pages."""

    url: str = ""
    title: str = ""
    text: str = ""
    start: int | None = None
    end: int | None = None
    raw: Raw | None = None


class Text(msgspec.Struct, frozen=True, gc=False):
    """Words."""

    text: str = ""
    cache: Cache | None = None
    citations: tuple[Citation, ...] = ()
    extras: dict[str, Any] | None = None


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """The model's words of refusal, where the protocol sets them apart."""

    text: str = ""


class Media(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A picture, document, sound or film: inline (`data`, base64), by `url`, by `file_id`, or as `text`."""

    kind: Literal["image", "document", "audio", "video"]
    media_type: str = ""
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    keeper: str = ""
    """Who keeps the file of that id. Protocols of one provider share its files."""
    text: str | None = None
    """A plain-text document."""
    name: str | None = None
    """File name or title."""
    context: str | None = None
    detail: str | None = None
    cache: Cache | None = None
    raw: Raw | None = None


class Thinking(msgspec.Struct, frozen=True, gc=False):
    """Reasoning: visible text, opaque content, or both.

    Gemini may sign any part; a signature that is not on a call is a `Thinking` without text right after
    the part it signs.
    """

    text: str = ""
    seal: Seal | None = None
    extras: dict[str, Any] | None = None


REPLAYED = "replayed"
"""In `ToolCall.extras`: the upstream sent it in the place of a whole call, which it may be once more."""


RUN_BY_PROVIDER = "run_by_provider"
"""In `ToolCall.extras`: the upstream says that it runs the call itself."""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The model asks for a tool. `arguments` is the text as it came: JSON, or a freeform tool's input."""

    id: str
    name: str
    arguments: str = ""
    kind: Literal["function", "custom"] = "function"
    namespace: str | None = None
    seal: Seal | None = None
    cache: Cache | None = None
    raw: Raw | None = None
    extras: dict[str, Any] | None = None


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a tool answered."""

    call_id: str
    parts: tuple[Text | Media, ...] = ()
    is_error: bool = False
    name: str | None = None
    kind: Literal["function", "custom"] = "function"
    cache: Cache | None = None
    raw: Raw | None = None


class Opaque(msgspec.Struct, frozen=True, gc=False):
    """A part or item that only its own protocol understands: a server tool's result, a compaction, …"""

    raw: Raw
    type: str = ""


class Source(msgspec.Struct, frozen=True, gc=False):
    """A page that a web search found. `text` is what the search says about it."""

    url: str
    title: str = ""
    text: str = ""


class Search(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A web search that Dragoman ran for the model, and what it found. Answers have it; requests do not:
    a reader turns it into an ordinary call and its result."""

    id: str
    query: str
    sources: tuple[Source, ...] = ()
    error: str | None = None
    """Why nothing was found, as Anthropic's code: `unavailable`, `max_uses_exceeded`, …"""


Part = Text | Refusal | Media | Thinking | ToolCall | ToolResult | Opaque | Search


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message. Tool results stand in `user` messages, calls in `assistant` ones."""

    role: Role
    parts: tuple[Part, ...] = ()
    name: str | None = None
    raw: Raw | None = None


class ToolServer(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server. The provider calls its tools itself."""

    name: str
    url: str
    token: str | None = None
    headers: dict[str, str] | None = None
    allowed: tuple[str, ...] | None = None
    """The only tools that may be called. None: all but those that are denied."""
    denied: tuple[str, ...] = ()
    approval: bool | None = False
    """Must the user approve of each call? None: not said, which is "yes" where the client may say it."""


class Tool(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A tool the client offers.

    `function` has a JSON Schema, `custom` takes free text (perhaps by a grammar), `hosted` is run by the
    provider itself (`web_search`, `code_execution`, …) and has no neutral definition beyond its type.
    """

    name: str
    description: str | None = None
    parameters: dict[str, Any] | msgspec.Raw | None = None
    """The JSON Schema of the arguments; `msgspec.Raw` where a reader did not decode it. See `schema`."""
    kind: Literal["function", "custom", "hosted"] = "function"
    strict: bool | None = None
    namespace: str | None = None
    grammar: str | None = None
    """The grammar's text, where a custom tool has one."""
    grammar_syntax: str | None = None
    hosted: str | None = None
    server: ToolServer | None = None
    """Of a hosted tool that stands for the tools of an MCP server, if its address is known."""
    deferred: bool = False
    cache: Cache | None = None
    raw: Raw | None = None
    extras: dict[str, Any] | None = None

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the arguments, decoded."""
        given = self.parameters
        return _decode_schema(given) if isinstance(given, msgspec.Raw) else given


class ToolChoice(msgspec.Struct, frozen=True):
    """Must, may or must not the model call a tool, and which."""

    mode: Literal["auto", "none", "required", "named"]
    name: str | None = None
    namespace: str | None = None
    allowed: tuple[str, ...] | None = None
    """Only these tools may be called (Chat/Responses `allowed_tools`, Gemini `allowedFunctionNames`)."""


class Reasoning(msgspec.Struct, frozen=True):
    """How hard to think. `effort` or `budget` may be given; `enabled=False` switches it off."""

    enabled: bool | None = None
    effort: Effort | None = None
    budget: int | None = None
    adaptive: bool = False
    show: bool | None = None
    """Should the thoughts (or a summary) be in the answer?"""


class Format(msgspec.Struct, frozen=True):
    """Structured output: any JSON, or JSON by a schema."""

    kind: Literal["json", "schema"]
    schema: dict[str, Any] | None = None
    name: str | None = None
    strict: bool | None = None
    description: str | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about the request that is neither conversation nor tool. `None` is "not said"."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, Any] | None = None
    logprobs: int | None = None
    """How many alternatives per token; 0 asks for the chosen token's only."""
    seed: int | None = None
    n: int | None = None
    stop: tuple[str, ...] = ()
    reasoning: Reasoning | None = None
    format: Format | None = None
    verbosity: str | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    service_tier: str | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None
    cache_key: str | None = None
    cache: Cache | None = None
    """Anthropic's top-level mark: cache up to the last block that can be cached."""
    audio_out: bool = False
    store: bool | None = None
    background: bool = False
    compact: bool = False
    """The client does not want an answer but a summary that replaces the conversation."""
    previous_response_id: str | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One request for an answer."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    settings: Settings = Settings()
    stream: bool = False
    include_usage: bool = True
    """Chat clients must ask for usage in streams; every other protocol gives it anyway."""
    extras: dict[str, Any] | None = None
    """Top-level fields without neutral meaning, given back to the same protocol only."""
    raw: Raw | None = None
    """The whole body as it came: the same protocol gets it back unchanged but for the model's name."""

    def changed(self, **changes: Any) -> Request:
        """A copy with `changes`; it no longer stands for the body it was read from."""
        return msgspec.structs.replace(self, raw=None, **changes)


class Notice(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something a translation could not carry over as it was. `rule` is stable, for people and tests."""

    rule: str
    path: str
    message: str
    warning: bool = True
    """False: the request lost nothing, and something was added to it. Only the receipt says so."""


def leading_system(messages: Sequence[Message]) -> int:
    """How many messages at the beginning are system prompts (of either name)."""
    for count, message in enumerate(messages):
        if message.role not in ("system", "developer"):
            return count
    return len(messages)


def plain_text(parts: Iterable[Part], separator: str = "\n\n") -> str:
    """The words of `parts`, blocks set apart by `separator`."""
    return separator.join([p.text for p in parts if isinstance(p, Text) and p.text])
