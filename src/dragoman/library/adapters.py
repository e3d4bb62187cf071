"""What `ToolLoop` must know of each SDK: how to ask, and the shapes of its history.

No SDK is imported: each adapter works on the client and the objects it is handed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from ..messages import Message, Request, Text, Tool
from ..protocols.base import Target
from ..protocols.registry import protocol
from .calls import Finished
from .history import (
    anthropic_content,
    chat_message,
    gemini_parts,
    response_items,
)
from .inputs import plain

Entry = Any
"""One entry of a provider's history: a dict, or the SDK's own object."""


class ToolAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the model is told of one call."""

    call: Finished
    text: str
    is_error: bool = False
    value: Any = None
    """What the function returned."""
    refused: bool = False
    """The call was not fit to be run, and was not."""


class Adapter(Protocol):
    """One SDK's way of asking and of keeping a history."""

    protocol: str
    sdk: str
    """The package whose clients it serves, where nothing else is said."""

    def create(self, client: Any, stream: bool, is_async: bool) -> Callable[..., Any]: ...

    def request(self, history: list[Entry], tools: list[Any], settings: dict[str, Any]) -> dict[str, Any]: ...

    def prompt(self, text: str) -> Entry: ...

    def turn(self, received: Sequence[Any], calls: Sequence[Finished]) -> list[Entry]:
        """The assistant's turn, from the stream's events or the one whole response."""
        ...

    def results(self, answers: Sequence[ToolAnswer]) -> list[Entry]: ...


def definitions(name: str, tools: Iterable[Tool]) -> list[Any]:
    """The tools as a request of this protocol declares them."""
    asked = Request(model="", messages=(Message("user", (Text("."),)),), tools=tuple(tools))
    return protocol(name).write_request(asked, Target(model="")).body.get("tools", [])


_OUTPUTS = {"function": "function_call_output", "custom": "custom_tool_call_output"}


class _Streaming(ABC):
    """SDKs that take `stream=True` where they take everything else."""

    def create(self, client: Any, stream: bool, is_async: bool) -> Callable[..., Any]:
        create = self._create(client)
        return partial(create, stream=True) if stream else create

    @abstractmethod
    def _create(self, client: Any) -> Callable[..., Any]: ...


class Anthropic(_Streaming):
    """`client.messages` of the `anthropic` SDK."""

    protocol = "anthropic"
    sdk = "anthropic"

    def _create(self, client: Any) -> Callable[..., Any]:
        return client.messages.create

    def request(self, history: list[Entry], tools: list[Any], settings: dict[str, Any]) -> dict[str, Any]:
        return settings | {"messages": history, **_with_tools(settings, tools)}

    def prompt(self, text: str) -> Entry:
        return {"role": "user", "content": text}

    def turn(self, received: Sequence[Any], calls: Sequence[Finished]) -> list[Entry]:
        content = anthropic_content([plain(event) for event in received], calls)
        return [{"role": "assistant", "content": content}] if content else []

    def results(self, answers: Sequence[ToolAnswer]) -> list[Entry]:
        results: list[Any] = []
        texts: list[Any] = []
        for answer in answers:
            if answer.call.recovered:
                texts.append({"type": "text", "text": _as_text(answer)})
            else:
                result = {"type": "tool_result", "tool_use_id": answer.call.given_id, "content": answer.text}
                results.append(result | ({"is_error": True} if answer.is_error else {}))
        # Results come before any text, or the request is refused.
        return [{"role": "user", "content": results + texts}]


class OpenAIChat(_Streaming):
    """`client.chat.completions` of the `openai` SDK."""

    protocol = "openai-chat"
    sdk = "openai"

    def _create(self, client: Any) -> Callable[..., Any]:
        return client.chat.completions.create

    def request(self, history: list[Entry], tools: list[Any], settings: dict[str, Any]) -> dict[str, Any]:
        return settings | {"messages": history, **_with_tools(settings, tools)}

    def prompt(self, text: str) -> Entry:
        return {"role": "user", "content": text}

    def turn(self, received: Sequence[Any], calls: Sequence[Finished]) -> list[Entry]:
        return [chat_message([plain(chunk) for chunk in received], calls)]

    def results(self, answers: Sequence[ToolAnswer]) -> list[Entry]:
        native = [
            {"role": "tool", "tool_call_id": answer.call.given_id, "content": _marked(answer)}
            for answer in answers
            if not answer.call.recovered
        ]
        return [*native, *(self.prompt(_as_text(answer)) for answer in answers if answer.call.recovered)]


class OpenAIResponses(_Streaming):
    """`client.responses` of the `openai` SDK."""

    protocol = "openai-responses"
    sdk = ""

    def _create(self, client: Any) -> Callable[..., Any]:
        return client.responses.create

    def request(self, history: list[Entry], tools: list[Any], settings: dict[str, Any]) -> dict[str, Any]:
        return settings | {"input": history, **_with_tools(settings, tools)}

    def prompt(self, text: str) -> Entry:
        return {"role": "user", "content": text}

    def turn(self, received: Sequence[Any], calls: Sequence[Finished]) -> list[Entry]:
        return response_items([plain(event) for event in received], calls)

    def results(self, answers: Sequence[ToolAnswer]) -> list[Entry]:
        return [
            self.prompt(_as_text(answer))
            if answer.call.recovered
            else {
                "type": _OUTPUTS[answer.call.kind],
                "call_id": answer.call.given_id,
                "output": _marked(answer),
            }
            for answer in answers
        ]


class Gemini:
    """`client.models` of the `google-genai` SDK."""

    protocol = "gemini"
    sdk = "google"

    def create(self, client: Any, stream: bool, is_async: bool) -> Callable[..., Any]:
        models = (client.aio if is_async else client).models
        return models.generate_content_stream if stream else models.generate_content

    def request(self, history: list[Entry], tools: list[Any], settings: dict[str, Any]) -> dict[str, Any]:
        config: Any = settings.get("config") or ()
        fields: dict[str, Any] = dict(config)  # a dict, or the SDK's object, which gives its fields as pairs
        given = {name: value for name, value in fields.items() if value is not None}
        return settings | {"contents": history, "config": given | _with_tools(given, tools)}

    def prompt(self, text: str) -> Entry:
        return {"role": "user", "parts": [{"text": text}]}

    def turn(self, received: Sequence[Any], calls: Sequence[Finished]) -> list[Entry]:
        contents = [chunk.candidates[0].content for chunk in received if chunk.candidates]
        contents = [content for content in contents if content is not None and content.parts]
        parts = gemini_parts(contents, calls)
        return [type(contents[0])(role="model", parts=parts)] if parts else []

    def results(self, answers: Sequence[ToolAnswer]) -> list[Entry]:
        return [{"role": "user", "parts": [_gemini_result(answer) for answer in answers]}]


ADAPTERS: dict[str, Adapter] = {
    adapter.protocol: adapter for adapter in (Anthropic(), OpenAIChat(), OpenAIResponses(), Gemini())
}


def adapter_for(client: Any, name: str | None) -> Adapter:
    """The adapter called `name`, or the one that serves this client's package."""
    if name is not None:
        if name not in ADAPTERS:
            raise ValueError(f"there is no protocol {name!r}; there are {', '.join(ADAPTERS)}")
        return ADAPTERS[name]
    packages = {kind.__module__.partition(".")[0] for kind in type(client).__mro__}
    for adapter in ADAPTERS.values():
        if adapter.sdk in packages:
            return adapter
    raise ValueError(f"say which protocol a {type(client).__name__} speaks: {', '.join(ADAPTERS)}")


def _with_tools(settings: dict[str, Any], tools: list[Any]) -> dict[str, Any]:
    """The caller's own tools (a provider's web search, say) stay beside the loop's."""
    both = [*(settings.get("tools") or ()), *tools]
    return {"tools": both} if both else {}


def _marked(answer: ToolAnswer) -> str:
    """OpenAI has no flag for errors: the text says it, as the gateway writes it."""
    return f"Error: {answer.text}" if answer.is_error else answer.text


def _as_text(answer: ToolAnswer) -> str:
    return f"Result of {answer.call.name}: {_marked(answer)}"


def _gemini_result(answer: ToolAnswer) -> dict[str, Any]:
    call = answer.call
    if call.recovered:
        return {"text": _as_text(answer)}
    response = {"error" if answer.is_error else "output": answer.text}
    given = {"id": call.given_id} if call.given_id else {}
    return {"function_response": {**given, "name": call.given_name, "response": response}}
