"""`ToolLoop` with Responses of the `openai` SDK: its requests and the shape of its history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..adapters import Adapter, Entry, StreamOption, ToolAnswer, as_text, with_error_mark, with_tools
from ..calls import Finished
from ..history import Obj, by_id, native, readable
from ..inputs import plain

_OUTPUTS = {"function": "function_call_output", "custom": "custom_tool_call_output"}


class OpenAIResponses(StreamOption):
    """`client.responses` of the `openai` SDK."""

    protocol = "openai-responses"
    sdk = ""  # clients of the `openai` package use Chat Completions by default

    def _create(self, client: Any) -> Callable[..., Any]:
        return client.responses.create

    def request(self, history: list[Entry], tools: list[Any], settings: dict[str, Any]) -> dict[str, Any]:
        return settings | {"input": history, **with_tools(settings, tools)}

    def prompt(self, text: str) -> Entry:
        return {"role": "user", "content": text}

    def turn(self, received: Sequence[Any], calls: Sequence[Finished]) -> list[Entry]:
        return response_items([plain(event) for event in received], calls)

    def results(self, answers: Sequence[ToolAnswer]) -> list[Entry]:
        return [
            self.prompt(as_text(answer))
            if answer.call.recovered
            else {
                "type": _OUTPUTS[answer.call.kind],
                "call_id": answer.call.given_id,
                "output": with_error_mark(answer),
            }
            for answer in answers
        ]


def response_items(events: list[Obj], calls: Sequence[Finished]) -> list[Obj]:
    """The output items of a whole response, or of a response's events."""
    last: Any = events[-1] if events else {}
    final: Any = last.get("response") or last
    items: list[Obj] = final.get("output") or []
    if not items:  # some servers send a last event without the output
        items = [event["item"] for event in events if event.get("type") == "response.output_item.done"]
    for item in items:
        if item.get("type") == "function_call":
            call = by_id(calls, item.get("call_id"))
            item["arguments"] = readable(item.get("arguments") or "", call)
    there = {item.get("call_id") for item in items}
    return [*items, *(_response_call(call) for call in native(calls) if call.given_id not in there)]


def _response_call(call: Finished) -> Obj:
    head: Obj = {"call_id": call.given_id, "name": call.given_name}
    if call.kind == "custom":
        return {"type": "custom_tool_call", **head, "input": call.raw}
    return {"type": "function_call", **head, "arguments": readable(call.raw, call)}


ADAPTER: Adapter = OpenAIResponses()
