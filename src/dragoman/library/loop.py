"""`ToolLoop`: runs a model with tools, turn by turn, for agent authors.

    loop = ToolLoop(anthropic.Anthropic(), model="…", max_tokens=1024)

    @loop.tool
    def read_file(path: str) -> str: ...

    run = loop.run("What does README.md say?")

It runs only complete and valid calls, answers every other call with its problem, and stops at its limits. The
adapter has the facts about a provider; the SDK sends the requests.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Final, Literal, TypeVar, cast, overload

import msgspec

from ..model.events import Failed, Stop, Usage
from ..tools.loop_detection import Turn, canonical, repeated
from ..tools.rules import rules
from .adapters import Adapter, Entry, SdkClient, ToolAnswer, adapter_for, definitions
from .buffer import ToolCallBuffer
from .calls import Call, FailedCall, Finished
from .options import check_options
from .run import arun_call, run_call
from .signatures import LocalTool, local_tool

EndReason = Literal["done", "failed", "turns", "attempts", "repeats"]
F = TypeVar("F", bound=Callable[..., Any])
_END: Final = object()


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of the model, with the answers to its calls."""

    text: str
    answers: tuple[ToolAnswer, ...]
    stop: Stop | None
    usage: Usage
    failure: Failed | None = None
    """Why the model's answer failed. Then no call of it ran, and the history does not contain it."""

    @property
    def calls(self) -> tuple[Finished, ...]:
        return tuple(answer.call for answer in self.answers)


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A finished run. `messages` is the history for the next run, in the provider's form."""

    messages: list[Entry]
    steps: tuple[Step, ...]
    ended: EndReason
    """`done`: the model made no more calls. `failed`: its answer failed. Else the limit that was reached."""

    @property
    def text(self) -> str:
        """The text of the last turn."""
        return self.steps[-1].text if self.steps else ""

    @property
    def failure(self) -> Failed | None:
        return self.steps[-1].failure if self.steps else None


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a run."""

    turns: int
    attempts: int
    repeats: int


class _Conversation:
    """The history of one run, and the decision to continue. No I/O: `run` and `arun` share it."""

    def __init__(self, adapter: Adapter, history: list[Entry], bounds: Bounds) -> None:
        self.history = history
        self.steps: list[Step] = []
        self.ended: EndReason | None = None
        self._adapter = adapter
        self._bounds = bounds
        self._invalid_turns = 0
        self._done: list[Turn] = []

    def add_turn(
        self, buffer: ToolCallBuffer, received: Sequence[Any], answers: Sequence[ToolAnswer]
    ) -> Step:
        """Add a finished turn and the answers to its calls."""
        step = Step(
            text=buffer.text,
            answers=tuple(answers),
            stop=buffer.stop,
            usage=buffer.usage,
            failure=buffer.failure,
        )
        self.steps.append(step)
        if step.failure is None:
            self.history += self._adapter.turn(received, step.calls)
            if answers:
                self.history += self._adapter.results(answers)
        self.ended = self._verdict(step)
        return step

    def _verdict(self, step: Step) -> EndReason | None:
        if step.failure is not None:
            return "failed"
        if not step.answers:
            # Anthropic's server tools may need several requests: `pause_turn` asks for the next one.
            return None if step.stop is Stop.PAUSE and len(self.steps) < self._bounds.turns else "done"
        self._invalid_turns = self._invalid_turns + 1 if any(map(_is_invalid, step.answers)) else 0
        self._done.append(_turn(step))
        same = repeated(self._done)
        if self._invalid_turns >= self._bounds.attempts:
            return "attempts"
        if same is not None and same.count >= self._bounds.repeats:
            return "repeats"
        return "turns" if len(self.steps) >= self._bounds.turns else None


class ToolLoop:
    """Runs tools with a client of the `anthropic`, `openai` or `google-genai` SDK.

    `definitions` works without a `client`. An OpenAI client uses Chat Completions unless
    `protocol="openai-responses"`. All other keyword arguments go into every request.
    """

    def __init__(
        self,
        client: SdkClient | None = None,
        *,
        protocol: str | None = None,
        tools: Iterable[Callable[..., Any] | LocalTool] = (),
        stream: bool = False,
        max_turns: int = 25,
        max_attempts: int = 3,
        max_repeats: int = 3,
        tool_timeout: float | None = None,
        rules_off: Collection[str] = (),
        on_call: Callable[[Call], None] | None = None,
        **request: Any,
    ) -> None:
        self.tools: dict[str, LocalTool] = {}
        self._client = client
        self._protocol = protocol
        self._stream = stream
        self._bounds = Bounds(turns=max_turns, attempts=max_attempts, repeats=max_repeats)
        self._timeout = tool_timeout
        self._rules_off = rules_off
        self._on_call = on_call
        self._request = request
        self._check_options(request)
        rules(rules_off)  # tells an unknown name at once
        for tool in tools:
            self._add(tool if isinstance(tool, LocalTool) else local_tool(tool))

    @overload
    def tool(self, function: F) -> F: ...
    @overload
    def tool(self, *, name: str | None = None, description: str | None = None) -> Callable[[F], F]: ...
    def tool(self, function: Any = None, *, name: str | None = None, description: str | None = None) -> Any:
        """Offer a function to the model: `@loop.tool`, or `@loop.tool(name=…, description=…)`."""

        def offer(function: F) -> F:
            self._add(local_tool(function, name=name, description=description))
            return function

        return offer if function is None else offer(function)

    def definitions(self, protocol: str) -> list[Any]:
        """The tools in the form of `protocol`'s requests."""
        return definitions(protocol, (tool.tool for tool in self.tools.values()))

    def run(self, messages: str | Sequence[Entry], **request: Any) -> Run:
        """Send requests and run their calls, until the model is done or a limit is reached."""
        adapter, conversation = self._begin(messages, request)
        for _ in self._steps(adapter, conversation, request):
            pass
        return _finished(conversation)

    async def arun(self, messages: str | Sequence[Entry], **request: Any) -> Run:
        """`run` with an async client. The calls of one turn run in parallel."""
        adapter, conversation = self._begin(messages, request)
        async for _ in self._asteps(adapter, conversation, request):
            pass
        return _finished(conversation)

    def steps(self, messages: str | Sequence[Entry], **request: Any) -> Iterator[Step]:
        """`run`, one step at a time."""
        return self._steps(*self._begin(messages, request), request)

    def asteps(self, messages: str | Sequence[Entry], **request: Any) -> AsyncIterator[Step]:
        """`arun`, one step at a time."""
        return self._asteps(*self._begin(messages, request), request)

    def _add(self, tool: LocalTool) -> None:
        if tool.name in self.tools:
            raise ValueError(f"a tool named {tool.name!r} exists already: give this one another name")
        self.tools[tool.name] = tool

    def _check_options(self, given: Iterable[str]) -> None:
        create = None
        if self._client is not None:
            adapter = adapter_for(self._client, self._protocol)
            with suppress(AttributeError):  # not the SDK's client: the first request tells what is missing
                create = adapter.create(self._client, False, False)
        check_options(given, _OPTIONS, create)

    def _begin(
        self, messages: str | Sequence[Entry], request: Iterable[str]
    ) -> tuple[Adapter, _Conversation]:
        self._check_options(request)
        adapter = adapter_for(self._client, self._protocol)
        history = [adapter.prompt(messages)] if isinstance(messages, str) else list(messages)
        return adapter, _Conversation(adapter, history, self._bounds)

    def _steps(
        self, adapter: Adapter, conversation: _Conversation, request: dict[str, Any]
    ) -> Iterator[Step]:
        is_async = [name for name, tool in self.tools.items() if tool.is_async]
        if is_async:
            raise TypeError(f"use `arun`: these tools are async functions: {', '.join(is_async)}")
        while conversation.ended is None:
            buffer, received = self._buffer(adapter), list[Any]()
            reply = self._ask(adapter, conversation, request, is_async=False)
            items = iter(reply if self._stream else (reply,))
            while (item := _next(items, buffer)) is not _END:
                received.append(item)
                self._show(buffer.feed(item))
            self._show(buffer.close())
            yield conversation.add_turn(
                buffer, received, [run_call(call, self.tools) for call in _to_answer(buffer)]
            )

    async def _asteps(
        self, adapter: Adapter, conversation: _Conversation, request: dict[str, Any]
    ) -> AsyncIterator[Step]:
        while conversation.ended is None:
            buffer, received = self._buffer(adapter), list[Any]()
            reply = await self._ask(adapter, conversation, request, is_async=True)
            items = aiter(reply if self._stream else _only(reply))
            while (item := await _anext(items, buffer)) is not _END:
                received.append(item)
                self._show(buffer.feed(item))
            self._show(buffer.close())
            running = [arun_call(call, self.tools, self._timeout) for call in _to_answer(buffer)]
            yield conversation.add_turn(buffer, received, await asyncio.gather(*running))

    def _buffer(self, adapter: Adapter) -> ToolCallBuffer:
        tools = self.tools.values()
        return ToolCallBuffer(tools, protocol=adapter.protocol, rules_off=self._rules_off)

    def _ask(
        self, adapter: Adapter, conversation: _Conversation, request: dict[str, Any], *, is_async: bool
    ) -> Any:
        settings = self._request | request
        arguments = adapter.request(list(conversation.history), self.definitions(adapter.protocol), settings)
        reply = adapter.create(self._client, self._stream, is_async)(**arguments)
        if inspect.isawaitable(reply) is is_async:
            return reply
        if inspect.iscoroutine(reply):
            reply.close()
        wanted = "an async client" if is_async else "a client that is not async"
        raise TypeError(f"{'arun' if is_async else 'run'} needs {wanted}, not {type(self._client).__name__}")

    def _show(self, calls: list[Call]) -> None:
        if self._on_call is not None:
            for call in calls:
                self._on_call(call)


_OPTIONS = frozenset(inspect.signature(ToolLoop).parameters) - {"client", "request"}


def _next(items: Iterator[Any], buffer: ToolCallBuffer) -> Any:
    """The next item of the SDK's stream, or `_END`. A stream that breaks off fails the answer.

    Each SDK raises other exceptions for a cut (httpx, aiohttp, its own), so all are caught here. An exception
    of the caller's own code (`on_call`) is not raised here, and passes.
    """
    try:
        return next(items, _END)
    except Exception as error:  # noqa: BLE001 - the steps so far must not be lost
        buffer.fail(_broke_off(error))
        return _END


async def _anext(items: AsyncIterator[Any], buffer: ToolCallBuffer) -> Any:
    """`_next` for an async stream."""
    try:
        return await anext(items, _END)
    except Exception as error:  # noqa: BLE001 - the steps so far must not be lost
        buffer.fail(_broke_off(error))
        return _END


def _broke_off(error: Exception) -> str:
    return f"the model's answer broke off: {_sentence(error) or str(error) or type(error).__name__}"


def _sentence(error: Exception) -> str:
    """The provider's sentence in an SDK's error. Its text is the whole body, as Python writes a dict."""
    found: Any = getattr(error, "body", None) or getattr(error, "details", None)
    while isinstance(found, dict):
        body = cast("dict[str, Any]", found)
        found = body.get("error") or body.get("message")
    return found if isinstance(found, str) else ""


def _to_answer(buffer: ToolCallBuffer) -> list[Finished]:
    """The calls to run. None of a failed answer: the missing rest could change their meaning."""
    return [] if buffer.failure is not None else buffer.calls


def _finished(conversation: _Conversation) -> Run:
    assert conversation.ended is not None
    return Run(messages=conversation.history, steps=tuple(conversation.steps), ended=conversation.ended)


def _is_invalid(answer: ToolAnswer) -> bool:
    """The call was invalid, and the model has to try again. A duplicate needs no new attempt."""
    duplicate = isinstance(answer.call, FailedCall) and answer.call.reason == "duplicate"
    return answer.refused and not duplicate


def _turn(step: Step) -> Turn:
    """The step for loop detection, which compares all parallel calls of a turn together."""
    names = "\n".join(call.name for call in step.calls)
    arguments = "\n".join(canonical(call.text or call.raw) for call in step.calls)
    return names, arguments, "\n".join(answer.text for answer in step.answers)


async def _only(reply: Any) -> AsyncIterator[Any]:
    yield reply
