"""`ToolLoop` with Chat Completions of the `openai` SDK: its requests and the shape of its history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...protocols.common.fields import is_array
from ..adapters import Adapter, Entry, StreamOption, ToolAnswer, as_text, with_error_mark, with_tools
from ..calls import Finished
from ..history import Obj, native, readable
from ..inputs import plain

_KNOWN_MEMBERS = frozenset({"index", "id", "type", "function", "custom"})


class OpenAIChat(StreamOption):
    """`client.chat.completions` of the `openai` SDK."""

    protocol = "openai-chat"
    sdk = "openai"

    def _create(self, client: Any) -> Callable[..., Any]:
        return client.chat.completions.create

    def request(self, history: list[Entry], tools: list[Any], settings: dict[str, Any]) -> dict[str, Any]:
        return settings | {"messages": history, **with_tools(settings, tools)}

    def prompt(self, text: str) -> Entry:
        return {"role": "user", "content": text}

    def turn(self, received: Sequence[Any], calls: Sequence[Finished]) -> list[Entry]:
        return [chat_message([plain(chunk) for chunk in received], calls)]

    def results(self, answers: Sequence[ToolAnswer]) -> list[Entry]:
        native = [
            {"role": "tool", "tool_call_id": answer.call.given_id, "content": with_error_mark(answer)}
            for answer in answers
            if not answer.call.recovered
        ]
        return [*native, *(self.prompt(as_text(answer)) for answer in answers if answer.call.recovered)]


def chat_message(chunks: list[Obj], calls: Sequence[Finished]) -> Obj:
    """The message of a whole completion, or of a completion's chunks."""
    choices = [choice for chunk in chunks for choice in chunk.get("choices") or () if not choice.get("index")]
    whole = [choice["message"] for choice in choices if choice.get("message")]
    received = whole[:1] or [choice["delta"] for choice in choices if choice.get("delta")]
    message = dict(whole[0]) if whole else _merged(received)
    message.pop("tool_calls", None)
    entries = [entry for part in received for entry in part.get("tool_calls") or ()]
    if native(calls):
        message["tool_calls"] = [_chat_call(call, entries) for call in native(calls)]
    return message


def _merged(deltas: list[Obj]) -> Obj:
    """Merge deltas: append texts, extend lists, set everything else."""
    message: Obj = {"role": "assistant", "content": None}
    texts: dict[str, list[str]] = {}
    for delta in deltas:
        for name, value in delta.items():
            if isinstance(value, str) and name != "role":
                texts.setdefault(name, []).append(value)
            elif is_array(value):
                message[name] = [*message.get(name, ()), *value]
            elif value is not None:
                message[name] = value
    message.update({name: "".join(pieces) for name, pieces in texts.items()})
    message["content"] = message["content"] or None
    return message


def _chat_call(call: Finished, entries: list[Obj]) -> Obj:
    extras: Obj = {}
    for entry in entries:  # Gemini's signatures are in `extra_content` of a call
        if entry.get("id") == call.given_id:
            extras.update({name: value for name, value in entry.items() if name not in _KNOWN_MEMBERS})
    if call.kind == "custom":
        body: Obj = {"type": "custom", "custom": {"name": call.given_name, "input": call.raw}}
    else:
        arguments = readable(call.raw, call)
        body = {"type": "function", "function": {"name": call.given_name, "arguments": arguments}}
    return {"id": call.given_id, **body, **extras}


ADAPTER: Adapter = OpenAIChat()
