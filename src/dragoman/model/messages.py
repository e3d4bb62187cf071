"""The neutral request: a conversation, its tools and its settings, in any protocol.

A neutral message is one message of the client's protocol (one Chat message, one Responses item). Only the
writers merge messages, so reading loses nothing. Content without neutral meaning stays in `raw` (the value as
the client sent it) or `extras` (unknown members): only an upstream of the same protocol gets it. All values
are frozen, so they hold no reference cycles (`gc=False`). To change one, build a new one without `raw`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

Role = Literal["system", "developer", "user", "assistant"]
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Raw(msgspec.Struct, frozen=True, gc=False):
    """A JSON value as the client or upstream sent it, in the protocol `protocol`."""

    protocol: str
    held: Any = msgspec.field(name="value")
    """The value, or the list that contains it."""
    at: int | None = None
    """The index of the value in `held`. The list is split into its items only when one is needed."""

    @property
    def value(self) -> Any:
        """The JSON value. It, or some of its members, may be `msgspec.Raw`: JSON that is not decoded."""
        return self.held if self.at is None else self.held[self.at]

    @property
    def parsed(self) -> Any:
        """The JSON value, fully decoded."""
        return msgspec.json.decode(msgspec.json.encode(self.value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Raw) and (self.protocol, self.parsed) == (other.protocol, other.parsed)

    __hash__ = None  # type: ignore[assignment]


class Extras(msgspec.Struct, frozen=True, gc=False):
    """The members of a JSON object that Dragoman does not understand, in the protocol `protocol`.

    A writer or encoder of that protocol puts them back where they were. Any other leaves them out.
    """

    protocol: str
    members: dict[str, Any]


def members_for(protocol: str, extras: Extras | None) -> dict[str, Any]:
    """The members in `extras` that belong to `protocol`."""
    return extras.members if extras is not None and extras.protocol == protocol else {}


class Seal(msgspec.Struct, frozen=True, gc=False):
    """Opaque reasoning: a signature or encrypted content. Only its issuer gets it back, unchanged.

    `protocol` is the protocol that it belongs to. `issuer` is the upstream that created it, if known.
    """

    protocol: str
    data: str
    id: str | None = None
    """The id of the reasoning item (`rs_…`). Only OpenAI Responses has one."""
    issuer: str = ""
    redacted: bool = False
    """An Anthropic `redacted_thinking` block: it has data and no text."""


class Cache(msgspec.Struct, frozen=True, gc=False):
    """A prompt-cache breakpoint after the part that holds it."""

    ttl: str | None = None


class Citation(msgspec.Struct, frozen=True, gc=False):
    """The source of a piece of text. `raw` keeps kinds other than web pages."""

    url: str = ""
    title: str = ""
    text: str = ""
    start: int | None = None
    end: int | None = None
    raw: Raw | None = None


class Text(msgspec.Struct, frozen=True, gc=False):
    """Plain text, perhaps with citations."""

    text: str = ""
    cache: Cache | None = None
    citations: tuple[Citation, ...] = ()
    extras: Extras | None = None


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """The text of a refusal, in a protocol that separates it from other text."""

    text: str = ""
    extras: Extras | None = None


class Media(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An image, document, audio or video: inline (`data`, base64), by `url`, by `file_id`, or as `text`."""

    kind: Literal["image", "document", "audio", "video"]
    media_type: str = ""
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    file_provider: str = ""
    """The provider that stores the file `file_id`. Protocols of one provider share its files."""
    text: str | None = None
    """A plain-text document."""
    name: str | None = None
    """The file name or title."""
    context: str | None = None
    detail: str | None = None
    cache: Cache | None = None
    raw: Raw | None = None
    extras: Extras | None = None


class Thinking(msgspec.Struct, frozen=True, gc=False):
    """Reasoning: visible text, a seal, or both.

    Gemini may sign any part. A signature on anything but a call becomes a `Thinking` without text, directly
    after the signed part.
    """

    text: str = ""
    seal: Seal | None = None
    extras: Extras | None = None
    summaries: tuple[str, ...] = ()
    """The parts of a Responses summary, if it has several. `text` holds them with blank lines between."""


SEPARATOR = "\n\n"
"""Stands between parts of reasoning that share one text."""


def thinking_text(thoughts: Iterable[Thinking]) -> str:
    """The text of several thinking parts, for a protocol with one field for all reasoning of a turn."""
    return SEPARATOR.join([thought.text for thought in thoughts if thought.text])


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A tool call of the model. `arguments` is the original text: JSON, or the input of a freeform tool."""

    id: str
    name: str
    arguments: str = ""
    kind: Literal["function", "custom"] = "function"
    namespace: str | None = None
    seal: Seal | None = None
    cache: Cache | None = None
    replayed: bool = False
    """The call reuses the index of a complete call, so it may be a repetition of it."""
    run_by_provider: str = ""
    """The call's type, if it says that the provider runs the call itself."""
    builtin: str = ""
    """The client's built-in tool that is called (`apply_patch`), if Dragoman declared it as a function."""
    raw: Raw | None = None
    extras: Extras | None = None


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The result of a tool call."""

    call_id: str
    parts: tuple[Text | Media, ...] = ()
    is_error: bool = False
    name: str | None = None
    kind: Literal["function", "custom"] = "function"
    cache: Cache | None = None
    raw: Raw | None = None
    extras: Extras | None = None


class Opaque(msgspec.Struct, frozen=True, gc=False):
    """A part or item with a meaning in its own protocol only: the result of a server tool, a compaction, …"""

    raw: Raw
    type: str = ""
    input: str = ""
    """The JSON text of its input, if that arrived in deltas (Anthropic's server tools)."""
    extras: Extras | None = None


class Source(msgspec.Struct, frozen=True, gc=False):
    """A page that a web search found. `text` is the excerpt in the search result."""

    url: str
    title: str = ""
    text: str = ""


class Search(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A web search that Dragoman ran, with its result. Request readers turn it into a call and a result."""

    id: str
    query: str
    sources: tuple[Source, ...] = ()
    error: str | None = None
    """One of Anthropic's error codes: `unavailable`, `max_uses_exceeded`, …"""


Part = Text | Refusal | Media | Thinking | ToolCall | ToolResult | Opaque | Search


class Message(msgspec.Struct, frozen=True, gc=False):
    """One message. Tool results are in `user` messages, tool calls in `assistant` messages."""

    role: Role
    parts: tuple[Part, ...] = ()
    name: str | None = None
    raw: Raw | None = None
    """The message as the client sent it. None: Dragoman made or changed it."""
    extras: Extras | None = None
    """The unknown members, if there is no `raw`."""


class ToolServer(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server. The provider calls its tools itself."""

    name: str
    url: str
    token: str | None = None
    headers: dict[str, str] | None = None
    allowed: tuple[str, ...] | None = None
    """The tools that may be called. None: all tools except the denied ones."""
    denied: tuple[str, ...] = ()
    approval: bool = False
    """Must the user approve each call?"""


class SearchLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a web search that the provider runs may find, and where the user is."""

    allowed: tuple[str, ...] = ()
    """The only domains to find. Empty: all."""
    blocked: tuple[str, ...] = ()
    max_uses: int | None = None
    place: dict[str, str] | None = None
    """The user's `city`, `region`, `country` and `timezone`, as far as known."""
    size: str | None = None
    """How much of the results the model reads: `low`, `medium` or `high`."""


class Tool(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A tool that the client declares.

    A `function` has a JSON Schema. A `custom` tool is freeform: it takes text, perhaps with a grammar. The
    provider runs a `hosted` tool itself (`web_search`, `code_execution`, …). Only its type is neutral.
    """

    name: str
    description: str | None = None
    parameters: dict[str, Any] | msgspec.Raw | None = None
    """The JSON Schema of the arguments. It is `msgspec.Raw` if the reader did not decode it: see `schema`."""
    kind: Literal["function", "custom", "hosted"] = "function"
    strict: bool | None = None
    namespace: str | None = None
    grammar: str | None = None
    """The text of a custom tool's grammar."""
    grammar_syntax: str | None = None
    hosted: str | None = None
    server: ToolServer | None = None
    """The MCP server of a hosted tool that provides the server's tools; None if its address is unknown."""
    search: SearchLimits | None = None
    """The limits of a hosted web search; None: it has none."""
    deferred: bool = False
    builtin: str = ""
    """The client's built-in tool (`apply_patch`) that this function stands for."""
    cache: Cache | None = None
    raw: Raw | None = None
    extras: dict[str, Any] | None = None

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the arguments, decoded."""
        given = self.parameters
        return msgspec.json.decode(given, type=dict[str, Any]) if isinstance(given, msgspec.Raw) else given


class ToolChoice(msgspec.Struct, frozen=True):
    """Whether the model must, may or must not call a tool, and which one."""

    mode: Literal["auto", "none", "required", "named"]
    name: str | None = None
    namespace: str | None = None
    allowed: tuple[str, ...] | None = None
    """The only tools that the model may call (OpenAI: `allowed_tools`, Gemini: `allowedFunctionNames`)."""


class Reasoning(msgspec.Struct, frozen=True):
    """How much the model reasons, as `effort` or as `budget`. `enabled=False` switches reasoning off."""

    enabled: bool | None = None
    effort: Effort | None = None
    budget: int | None = None
    adaptive: bool = False
    show: bool | None = None
    """Should the answer contain the reasoning, or a summary of it?"""


class Format(msgspec.Struct, frozen=True):
    """Structured output: any JSON, or JSON that fits a schema."""

    kind: Literal["json", "schema"]
    schema: dict[str, Any] | None = None
    name: str | None = None
    strict: bool | None = None
    description: str | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The request settings: everything except messages and tools. `None`: the client sets no value."""

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    logit_bias: dict[str, Any] | None = None
    logprobs: int | None = None
    """The number of alternatives per token. 0: only the log probability of the chosen token."""
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
    """Anthropic's top-level `cache_control`: cache up to the last block that can be cached."""
    audio_out: bool = False
    store: bool | None = None
    background: bool = False
    compact: bool = False
    """The client asks for a summary that replaces the conversation, not for an answer."""
    previous_response_id: str | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A client's request for an answer."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    settings: Settings = Settings()
    stream: bool = False
    include_usage: bool = True
    """Chat clients get usage in a stream only if they ask for it. All other protocols always send it."""
    betas: tuple[str, ...] = ()
    """Beta features that the client names in the body. Only an upstream of the same protocol gets them."""
    extras: dict[str, Any] | None = None
    """Top-level fields without neutral meaning. Only an upstream of the same protocol gets them."""
    raw: Raw | None = None
    """The members of the body. A writer of the same protocol takes the settings as they are here."""

    def changed(self, **changes: Any) -> Request:
        """A copy with `changes`. `raw` stays if only messages or tools change: none of it is written."""
        fits = changes.keys() <= {"messages", "tools"}
        return msgspec.structs.replace(self, raw=self.raw if fits else None, **changes)


class Notice(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a request that could not be carried over unchanged. `rule` is a stable name."""

    rule: str
    path: str
    message: str
    warning: bool = True
    """False: the request lost nothing. Only the receipt says what was added."""


def leading_system(messages: Sequence[Message]) -> int:
    """The number of system and developer messages at the beginning."""
    for count, message in enumerate(messages):
        if message.role not in ("system", "developer"):
            return count
    return len(messages)


def plain_text(parts: Iterable[Part], separator: str = "\n\n") -> str:
    """The text of `parts`, joined by `separator`."""
    return separator.join([p.text for p in parts if isinstance(p, Text) and p.text])
