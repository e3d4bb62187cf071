"""Cursor's own JSON, stream and whole, to the neutral form.

Only a `tool_call_v2` counts as a call: Cursor does not run a call that was only announced. The arguments of
an MCP call are its JSON text. The parameters of Cursor's file reader become those of `read_file` in the
samples. The arguments of any other tool are its parameter structure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import sse
from ..shape import (
    Json,
    ReducedAnswer,
    ReducedCall,
    UnreadableError,
    compact,
    error_message,
    inner,
    is_array,
    is_object,
    load,
    load_object,
)
from .openai_chat import usage_of

_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def stream(body: bytes) -> ReducedAnswer:
    frames = [event.data for event in sse.events(body)]
    return answer_of(load_object(frame) for frame in frames if frame != "[DONE]")


def whole(body: bytes) -> ReducedAnswer:
    value = load(body)
    return answer_of(value if is_array(value) else [value])


def answer_of(objects: Iterable[Any]) -> ReducedAnswer:
    answer = ReducedAnswer()
    names: dict[str, str] = {}
    for entry in objects:
        if not is_object(entry):
            raise UnreadableError(f"not a JSON object: {str(entry)[:80]}")
        _read(answer, entry, names)
    return answer


def _read(answer: ReducedAnswer, entry: Json, names: dict[str, str]) -> None:
    answer.text += entry.get("text", "")
    answer.thinking += inner(entry, "thinking").get("text", "")
    if "partial_tool_call" in entry:
        names[entry["partial_tool_call"]["tool_call_id"]] = entry["partial_tool_call"]["name"]
    if "tool_call_v2" in entry:
        answer.calls.append(_call(entry["tool_call_v2"], names))
    if "finish_reason" in entry:
        answer.stop = _STOPS.get(entry["finish_reason"], entry["finish_reason"])
    if "usage" in entry:
        answer.usage = usage_of(entry["usage"])
    if "error" in entry:
        answer.fail(error_message(entry["error"]))


def _call(call: Json, names: dict[str, str]) -> ReducedCall:
    id = call["tool_call_id"]
    if "mcp_params" in call:
        (tool,) = call["mcp_params"]["tools"]
        return ReducedCall(id, tool["name"], tool["parameters"])
    (params,) = [value for key, value in call.items() if key.endswith("_params")]
    value = _file(params) if "read_file_params" in call else params
    return ReducedCall(id, names[id], compact(value), value=value)


def _file(params: Json) -> Json:
    first, last = params.get("start_line_one_indexed"), params.get("end_line_one_indexed_inclusive")
    file: Json = {"path": params["relative_workspace_path"]}
    if last is not None:
        file["limit"] = last - first + 1
    return file if first in (None, 1) else {**file, "offset": first}
