"""`ToolLoop` with the `anthropic` SDK: its requests and the shape of its history."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...protocols.common.fields import is_array, is_object
from ..adapters import Adapter, Entry, StreamOption, ToolAnswer, as_text, with_tools
from ..calls import Finished
from ..history import Obj, by_id, parsed
from ..inputs import plain

# The deltas, and the member that each of them extends.
_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


class Anthropic(StreamOption):
    """`client.messages` of the `anthropic` SDK."""

    protocol = "anthropic"
    sdk = "anthropic"

    def _create(self, client: Any) -> Callable[..., Any]:
        return client.messages.create

    def request(self, history: list[Entry], tools: list[Any], settings: dict[str, Any]) -> dict[str, Any]:
        return settings | {"messages": history, **with_tools(settings, tools)}

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
                texts.append({"type": "text", "text": as_text(answer)})
            else:
                result = {"type": "tool_result", "tool_use_id": answer.call.given_id, "content": answer.text}
                results.append(result | ({"is_error": True} if answer.is_error else {}))
        # Anthropic refuses a message with text before its tool results.
        return [{"role": "user", "content": results + texts}]


def anthropic_content(events: list[Obj], calls: Sequence[Finished]) -> list[Obj]:
    """The content blocks of a whole message, or of a message's events."""
    whole = events[0].get("content") if events and events[0].get("type") == "message" else None
    blocks: list[Obj] = whole if is_array(whole) else _streamed_blocks(events)
    for block in blocks:
        if block.get("type") == "tool_use" and not is_object(block.get("input")):
            call = by_id(calls, block.get("id"))
            block["input"] = (call.arguments if call else None) or {}
    return [block for block in blocks if _is_kept(block)]


def _is_kept(block: Obj) -> bool:
    match block.get("type"):
        case "text":
            return bool(block.get("text"))
        case "tool_use":
            return bool(block.get("name"))
        case _:
            return True


def _streamed_blocks(events: list[Obj]) -> list[Obj]:
    blocks: list[Obj] = []
    at: dict[Any, tuple[Obj, dict[str, list[str]]]] = {}
    grown: list[tuple[Obj, dict[str, list[str]]]] = []
    for event in events:
        index = event.get("index")
        if event.get("type") == "content_block_start":
            at[index] = (dict(event["content_block"]), {})
            blocks.append(at[index][0])
            grown.append(at[index])
        elif event.get("type") == "content_block_delta" and index in at:
            _grow(*at[index], event["delta"])
    for block, pieces in grown:
        _join_pieces(block, pieces)
    return blocks


def _grow(block: Obj, pieces: dict[str, list[str]], delta: Obj) -> None:
    kind = delta.get("type")
    if kind in _GROWING:
        pieces.setdefault(_GROWING[kind], []).append(delta.get(_GROWING[kind]) or "")
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
    else:  # a signature comes in one delta
        block.update({name: value for name, value in delta.items() if name != "type"})


def _join_pieces(block: Obj, pieces: dict[str, list[str]]) -> None:
    for name, texts in pieces.items():
        text = "".join(texts)
        if name != "partial_json":
            block[name] = (block.get(name) or "") + text
        elif text:
            block["input"] = parsed(text)


ADAPTER: Adapter = Anthropic()
