"""Floor B: the shortest correct translation from Anthropic to OpenAI Chat, with aiohttp and orjson.
For a Responses client it does the same (`responses.py`).

It checks, mends and stores nothing, and handles no failures. Its cost is the minimal cost of a translation in
Python. Parts without a place in Chat are dropped: reasoning, cache marks, the error flag of a result.
"""

from __future__ import annotations

import sys
from typing import Any

import orjson
from aiohttp import ClientSession, DummyCookieJar, TCPConnector, web

from . import responses

UPSTREAM = web.AppKey("upstream", str)
SESSION = web.AppKey("session", ClientSession)
REASONS = {"tool_calls": "tool_use", "stop": "end_turn", "length": "max_tokens"}


def chat_request(asked: dict[str, Any]) -> dict[str, Any]:
    """An Anthropic request as a Chat request."""
    messages: list[dict[str, Any]] = []
    if asked.get("system"):
        messages.append({"role": "system", "content": _joined(asked["system"])})
    for message in asked["messages"]:
        messages += chat_messages(message)
    wanted: dict[str, Any] = {"model": asked["model"], "messages": messages, "stream": True}
    wanted["max_tokens"] = asked["max_tokens"]
    wanted["stream_options"] = {"include_usage": True}
    if asked.get("tools"):
        wanted["tools"] = [{"type": "function", "function": _function(tool)} for tool in asked["tools"]]
    return wanted


def _function(tool: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": tool["name"],
        "description": tool.get("description", ""),
        "parameters": tool["input_schema"],
    }


def chat_messages(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    if isinstance(content, str):
        return [{"role": message["role"], "content": content}]
    results = [
        {"role": "tool", "tool_call_id": block["tool_use_id"], "content": _joined(block["content"])}
        for block in content
        if block["type"] == "tool_result"
    ]
    calls = [
        {
            "id": block["id"],
            "type": "function",
            "function": {"name": block["name"], "arguments": orjson.dumps(block["input"]).decode()},
        }
        for block in content
        if block["type"] == "tool_use"
    ]
    text = "".join(block["text"] for block in content if block["type"] == "text")
    said: dict[str, Any] = {"role": message["role"], "content": text or None}
    if calls:
        said["tool_calls"] = calls
    return [*results, said] if text or calls else results


def _joined(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def event(kind: str, value: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **value}))


class Translation:
    """A Chat stream as an Anthropic stream."""

    def __init__(self, model: str) -> None:
        self._rest = b""
        self._index = -1
        self._kind = ""
        self._reason = "end_turn"
        self._usage = {"output_tokens": 0}
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
        usage = {"input_tokens": 0, "output_tokens": 0}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
        self.start = event("message_start", {"message": message})

    def feed(self, data: bytes) -> bytes:
        *frames, self._rest = (self._rest + data).split(b"\n\n")
        out: list[bytes] = []
        for frame in frames:
            payload = frame[6:]
            if payload == b"[DONE]":
                self._end(out)
            else:
                self._chunk(orjson.loads(payload), out)
        return b"".join(out)

    def _chunk(self, chunk: dict[str, Any], out: list[bytes]) -> None:
        if chunk.get("usage"):
            self._usage = {"output_tokens": chunk["usage"]["completion_tokens"]}
        for choice in chunk["choices"]:
            delta = choice["delta"]
            if delta.get("content"):
                self._open("text", {"type": "text", "text": ""}, out)
                self._delta({"type": "text_delta", "text": delta["content"]}, out)
            for call in delta.get("tool_calls", ()):
                function = call["function"]
                if call.get("id"):
                    block = {"type": "tool_use", "id": call["id"], "name": function["name"], "input": {}}
                    self._open(call["id"], block, out)
                if function.get("arguments"):
                    self._delta({"type": "input_json_delta", "partial_json": function["arguments"]}, out)
            if choice["finish_reason"]:
                self._reason = REASONS[choice["finish_reason"]]

    def _open(self, kind: str, block: dict[str, Any], out: list[bytes]) -> None:
        if kind == self._kind:
            return
        if self._kind:
            out.append(event("content_block_stop", {"index": self._index}))
        self._kind = kind
        self._index += 1
        out.append(event("content_block_start", {"index": self._index, "content_block": block}))

    def _delta(self, delta: dict[str, Any], out: list[bytes]) -> None:
        out.append(event("content_block_delta", {"index": self._index, "delta": delta}))

    def _end(self, out: list[bytes]) -> None:
        if self._kind:
            out.append(event("content_block_stop", {"index": self._index}))
        stop = {"stop_reason": self._reason, "stop_sequence": None}
        out += [event("message_delta", {"delta": stop, "usage": self._usage}), event("message_stop", {})]


async def messages(request: web.Request) -> web.StreamResponse:
    asked = orjson.loads(await request.read())
    return await translate(request, chat_request(asked), Translation(asked["model"]))


async def response(request: web.Request) -> web.StreamResponse:
    asked = orjson.loads(await request.read())
    return await translate(request, responses.chat_request(asked), responses.Translation(asked["model"]))


async def translate(
    request: web.Request, wanted: dict[str, Any], translation: Translation | responses.Translation
) -> web.StreamResponse:
    headers = {"content-type": "application/json", "authorization": request.headers.get("x-api-key", "")}
    url = request.app[UPSTREAM] + "/v1/chat/completions"
    body = orjson.dumps(wanted)
    async with request.app[SESSION].post(url, data=body, headers=headers) as answer:
        if answer.status != 200:
            return web.Response(status=answer.status, body=await answer.read())
        out = web.StreamResponse()
        out.content_type = "text/event-stream"
        await out.prepare(request)
        start = translation.start
        async for chunk in answer.content.iter_any():
            await out.write(start + translation.feed(chunk))
            start = b""
        await out.write_eof()
        return out


async def connect(app: web.Application) -> None:
    app[SESSION] = ClientSession(connector=TCPConnector(limit=0), cookie_jar=DummyCookieJar())


async def disconnect(app: web.Application) -> None:
    await app[SESSION].close()


def main(port: str, upstream: str) -> None:
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app[UPSTREAM] = upstream
    app.router.add_post("/v1/messages", messages)
    app.router.add_post("/v1/responses", response)
    app.on_startup.append(connect)
    app.on_cleanup.append(disconnect)
    web.run_app(app, host="127.0.0.1", port=int(port), access_log=None, print=None, handler_cancellation=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
