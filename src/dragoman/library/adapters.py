"""The contract between `ToolLoop` and each SDK: how to send a request, and the shape of its history.

No SDK is imported: an adapter works with the client and the objects that it gets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

import msgspec

from ..model.messages import Message, Request, Text, Tool
from ..protocols.base import Target
from ..protocols.registry import PROTOCOLS, protocol
from .calls import Finished

Entry = Any
"""One entry of a provider's history: a dict, or the SDK's own object."""


class AnthropicClient(Protocol):
    """`anthropic.Anthropic` or `AsyncAnthropic`, also for Bedrock and Vertex AI."""

    @property
    def messages(self) -> Any: ...


class OpenAIClient(Protocol):
    """`openai.OpenAI`, `AsyncOpenAI`, or their Azure clients: Chat Completions and Responses."""

    @property
    def chat(self) -> Any: ...
    @property
    def responses(self) -> Any: ...


class GeminiClient(Protocol):
    """`google.genai.Client`."""

    @property
    def models(self) -> Any: ...
    @property
    def aio(self) -> Any: ...


SdkClient = AnthropicClient | OpenAIClient | GeminiClient
"""A client of one of the SDKs, by its shape: no SDK needs to be installed for the types."""


class ToolAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one call, as the model gets it."""

    call: Finished
    text: str
    is_error: bool = False
    value: Any = None
    """The function's return value."""
    refused: bool = False
    """The call was invalid and did not run."""


class Adapter(Protocol):
    """How one SDK sends requests and keeps its history."""

    protocol: str
    sdk: str
    """The package whose clients use this adapter by default."""

    def create(self, client: Any, stream: bool, is_async: bool) -> Callable[..., Any]: ...

    def request(self, history: list[Entry], tools: list[Any], settings: dict[str, Any]) -> dict[str, Any]: ...

    def prompt(self, text: str) -> Entry: ...

    def turn(self, received: Sequence[Any], calls: Sequence[Finished]) -> list[Entry]:
        """The assistant's turn, from the stream's events or the one whole response."""
        ...

    def results(self, answers: Sequence[ToolAnswer]) -> list[Entry]: ...


def definitions(name: str, tools: Iterable[Tool]) -> list[Any]:
    """The tools in the form of this protocol's requests."""
    request = Request(model="", messages=(Message("user", (Text("."),)),), tools=tuple(tools))
    return protocol(name).write_request(request, Target(model="")).body.get("tools", [])


class StreamOption(ABC):
    """Base for SDKs with one method for streams and bodies, and a `stream=True` option."""

    def create(self, client: Any, stream: bool, is_async: bool) -> Callable[..., Any]:
        create = self._create(client)
        return partial(create, stream=True) if stream else create

    @abstractmethod
    def _create(self, client: Any) -> Callable[..., Any]: ...


def adapters() -> dict[str, Adapter]:
    """The adapters by protocol. Each is a module of `sdks/`, named like the protocol's folder."""
    modules = {name: f"{__package__}.sdks.{name.replace('-', '_')}" for name in PROTOCOLS}
    return {name: import_module(module).ADAPTER for name, module in modules.items() if find_spec(module)}


def adapter_for(client: Any, name: str | None) -> Adapter:
    """The adapter of the protocol `name`, or the default for the client's package."""
    known = adapters()
    if name is not None:
        if name not in known:
            raise ValueError(f"unknown protocol {name!r}; known protocols: {', '.join(known)}")
        return known[name]
    packages = {kind.__module__.partition(".")[0] for kind in type(client).__mro__}
    for adapter in known.values():
        if adapter.sdk in packages:
            return adapter
    raise ValueError(
        f"the protocol of {type(client).__name__} is not known; give ToolLoop protocol=…: {', '.join(known)}"
    )


def with_tools(settings: dict[str, Any], tools: list[Any]) -> dict[str, Any]:
    """The loop's tools, after the caller's own (such as a provider's web search)."""
    both = [*(settings.get("tools") or ()), *tools]
    return {"tools": both} if both else {}


def with_error_mark(answer: ToolAnswer) -> str:
    """OpenAI has no error flag on tool results, so the text marks an error, like the gateway does."""
    return f"Error: {answer.text}" if answer.is_error else answer.text


def as_text(answer: ToolAnswer) -> str:
    return f"Result of {answer.call.name}: {with_error_mark(answer)}"
