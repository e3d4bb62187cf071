"""What `ToolLoop` must know of each SDK: how to ask, and the shapes of its history.

No SDK is imported: each adapter works on the client and the objects it is handed.
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


class Streaming(ABC):
    """SDKs that take `stream=True` where they take everything else."""

    def create(self, client: Any, stream: bool, is_async: bool) -> Callable[..., Any]:
        create = self._create(client)
        return partial(create, stream=True) if stream else create

    @abstractmethod
    def _create(self, client: Any) -> Callable[..., Any]: ...


def adapters() -> dict[str, Adapter]:
    """The adapters by protocol. Each is in a module of `sdks/` that is named like the protocol's folder."""
    modules = {name: f"{__package__}.sdks.{name.replace('-', '_')}" for name in PROTOCOLS}
    return {name: import_module(module).ADAPTER for name, module in modules.items() if find_spec(module)}


def adapter_for(client: Any, name: str | None) -> Adapter:
    """The adapter called `name`, or the one that serves this client's package."""
    known = adapters()
    if name is not None:
        if name not in known:
            raise ValueError(f"there is no protocol {name!r}; there are {', '.join(known)}")
        return known[name]
    packages = {kind.__module__.partition(".")[0] for kind in type(client).__mro__}
    for adapter in known.values():
        if adapter.sdk in packages:
            return adapter
    raise ValueError(f"say which protocol a {type(client).__name__} speaks: {', '.join(known)}")


def with_tools(settings: dict[str, Any], tools: list[Any]) -> dict[str, Any]:
    """The caller's own tools (a provider's web search, say) stay beside the loop's."""
    both = [*(settings.get("tools") or ()), *tools]
    return {"tools": both} if both else {}


def marked(answer: ToolAnswer) -> str:
    """OpenAI has no flag for errors: the text says it, as the gateway writes it."""
    return f"Error: {answer.text}" if answer.is_error else answer.text


def as_text(answer: ToolAnswer) -> str:
    return f"Result of {answer.call.name}: {marked(answer)}"
