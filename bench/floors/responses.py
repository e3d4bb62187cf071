"""Floor B for a Responses client: the shortest correct translation to Chat and back.

Parts without a place in Chat are dropped: reasoning, the built-in search. A freeform tool becomes a function
with one string, which every Chat upstream accepts.
"""

from __future__ import annotations

from typing import Any

import orjson

Obj = dict[str, Any]
_ROLES = {"developer": "system"}
_FREE = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def chat_request(asked: Obj) -> Obj:
    """A Responses request as a Chat request."""
    messages: list[Obj] = []
    for item in asked["input"]:
        _add(messages, item)
    return {
        "model": asked["model"],
        "messages": messages,
        "tools": [*_functions(asked.get("tools", ()))],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def _add(messages: list[Obj], item: Obj) -> None:
    match item["type"]:
        case "message":
            text = "".join(part["text"] for part in item["content"])
            messages.append({"role": _ROLES.get(item["role"], item["role"]), "content": text})
        case "function_call":
            _call(messages, item, item["arguments"])
        case "custom_tool_call":
            _call(messages, item, orjson.dumps({"input": item["input"]}).decode())
        case "function_call_output" | "custom_tool_call_output":
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]})
        case _:
            pass


def _call(messages: list[Obj], item: Obj, arguments: str) -> None:
    """Add a call to the message of the text before it."""
    if messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    function = {"name": item["name"], "arguments": arguments}
    call = {"id": item["call_id"], "type": "function", "function": function}
    messages[-1].setdefault("tool_calls", []).append(call)


def _functions(tools: list[Obj], prefix: str = "") -> list[Obj]:
    found: list[Obj] = []
    for tool in tools:
        if tool["type"] == "namespace":
            found += _functions(tool["tools"], f"{tool['name']}__")
        elif tool["type"] in ("function", "custom"):
            function = {
                "name": prefix + tool["name"],
                "description": tool["description"],
                "parameters": tool.get("parameters", _FREE),
            }
            found.append({"type": "function", "function": function})
    return found


class Translation:
    """A Chat stream as a Responses stream."""

    def __init__(self, model: str) -> None:
        self._rest = b""
        self._number = -1
        self._item: Obj | None = None
        self._pieces: list[str] = []
        response = {"id": "resp_1", "object": "response", "created_at": 0, "model": model}
        self._response: Obj = {**response, "status": "in_progress", "output": []}
        self.start = self._event("response.created", {"response": self._response})

    def feed(self, data: bytes) -> bytes:
        *frames, self._rest = (self._rest + data).split(b"\n\n")
        out: list[bytes] = []
        for frame in frames:
            payload = frame[6:]
            if payload == b"[DONE]":
                self._close(out)
                done = {**self._response, "status": "completed"}
                out.append(self._event("response.completed", {"response": done}))
            else:
                self._chunk(orjson.loads(payload), out)
        return b"".join(out)

    def _event(self, kind: str, value: Obj) -> bytes:
        self._number += 1
        said = orjson.dumps({"type": kind, "sequence_number": self._number, **value})
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), said)

    def _chunk(self, chunk: Obj, out: list[bytes]) -> None:
        if usage := chunk.get("usage"):
            counts = {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]}
            self._response["usage"] = {**counts, "total_tokens": usage["total_tokens"]}
        for choice in chunk["choices"]:
            delta = choice["delta"]
            if delta.get("content"):
                self._open({"id": "msg_1", "type": "message", "role": "assistant", "content": []}, out)
                self._delta("response.output_text.delta", delta["content"], {"content_index": 0}, out)
            for call in delta.get("tool_calls", ()):
                function = call["function"]
                if call.get("id"):
                    item = {"id": call["id"], "type": "function_call", "call_id": call["id"]}
                    self._open({**item, "name": function["name"], "arguments": ""}, out)
                if function.get("arguments"):
                    self._delta("response.function_call_arguments.delta", function["arguments"], {}, out)

    def _place(self) -> Obj:
        assert self._item is not None
        return {"item_id": self._item["id"], "output_index": len(self._response["output"])}

    def _open(self, item: Obj, out: list[bytes]) -> None:
        if self._item is not None and self._item["id"] == item["id"]:
            return
        self._close(out)
        self._item = item
        added = {"output_index": len(self._response["output"]), "item": item}
        out.append(self._event("response.output_item.added", added))
        if item["type"] == "message":
            part = {"type": "output_text", "text": "", "annotations": []}
            opened = {**self._place(), "content_index": 0, "part": part}
            out.append(self._event("response.content_part.added", opened))

    def _delta(self, kind: str, piece: str, more: Obj, out: list[bytes]) -> None:
        self._pieces.append(piece)
        out.append(self._event(kind, {**self._place(), **more, "delta": piece}))

    def _close(self, out: list[bytes]) -> None:
        item = self._item
        if item is None:
            return
        whole, place = "".join(self._pieces), self._place()
        if item["type"] == "message":
            part = {"type": "output_text", "text": whole, "annotations": []}
            at = {**place, "content_index": 0}
            out.append(self._event("response.output_text.done", {**at, "text": whole}))
            out.append(self._event("response.content_part.done", {**at, "part": part}))
            item["content"] = [part]
        else:
            done = {**place, "arguments": whole}
            out.append(self._event("response.function_call_arguments.done", done))
            item["arguments"] = whole
        ended = {"output_index": place["output_index"], "item": {**item, "status": "completed"}}
        out.append(self._event("response.output_item.done", ended))
        self._response["output"].append(ended["item"])
        self._item, self._pieces = None, []
