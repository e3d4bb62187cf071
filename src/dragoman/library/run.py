"""Run one call and write the model's answer. No exception of a tool ends the loop."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

import msgspec

from .adapters import ToolAnswer
from .calls import FailedCall, Finished
from .signatures import LocalTool

_MAX_MESSAGE = 1000
_AGAIN = "Call it again with arguments that fit its schema."

Tools = Mapping[str, LocalTool]
Ready = tuple[LocalTool, inspect.BoundArguments]


def prepared(call: Finished, tools: Tools) -> Ready | ToolAnswer:
    """The function and its arguments, or the answer that says why the call does not run."""
    if isinstance(call, FailedCall):
        return _refused(call, _why_failed(call))
    tool = tools.get(call.name)
    if tool is None:
        return _refused(call, call.problems[0] if call.problems else f"unknown tool {call.name!r}")
    if call.problems:
        return _refused(call, f"invalid arguments: {'; '.join(call.problems)}. {_AGAIN}")
    try:
        return tool, tool.bind(call.arguments)
    except (
        ValueError
    ) as error:  # fits the JSON Schema, but not the Python type: an impossible date, a pydantic validator
        return _refused(call, f"invalid arguments: {_one_line(str(error))}. {_AGAIN}")


def run_call(call: Finished, tools: Tools) -> ToolAnswer:
    """Run a valid call. The answer has the result or the error."""
    ready = prepared(call, tools)
    if isinstance(ready, ToolAnswer):
        return ready
    tool, bound = ready
    try:
        return _answered(call, tool.function(*bound.args, **bound.kwargs))
    except Exception as error:  # noqa: BLE001 - the model gets any tool's error as its result
        return _raised(call, error)


async def arun_call(call: Finished, tools: Tools, seconds: float | None) -> ToolAnswer:
    """`run_call` for async functions. A sync function runs in a thread and does not block the others."""
    ready = prepared(call, tools)
    if isinstance(ready, ToolAnswer):
        return ready
    tool, bound = ready
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            if tool.is_async:
                value = await tool.function(*bound.args, **bound.kwargs)
            else:
                value = await asyncio.to_thread(tool.function, *bound.args, **bound.kwargs)
        return _answered(call, value)
    except Exception as error:  # noqa: BLE001 - the model gets any tool's error as its result
        if limit.expired():
            timed_out = f"{call.name} took longer than {seconds:g} seconds and was cancelled"
            return ToolAnswer(call=call, text=timed_out, is_error=True)
        return _raised(call, error)


def _why_failed(call: FailedCall) -> str:
    problems = "; ".join(call.problems)
    return problems if call.reason == "duplicate" else f"not run: {problems}. {_AGAIN}"


def _refused(call: Finished, why: str) -> ToolAnswer:
    return ToolAnswer(call=call, text=why, is_error=True, refused=True)


def _raised(call: Finished, error: Exception) -> ToolAnswer:
    message = _one_line(str(error))
    name = type(error).__name__
    return ToolAnswer(call=call, text=f"{name}: {message}" if message else name, is_error=True)


def _answered(call: Finished, value: Any) -> ToolAnswer:
    return ToolAnswer(call=call, text=_written(value), value=value)


def _written(value: Any) -> str:
    """A return value as text: a string unchanged, anything else as JSON."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value, enc_hook=_described).decode()


def _described(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_MESSAGE else line[: _MAX_MESSAGE - 1] + "…"
