"""Verifies an answer as a strict client reads it: text, tool call, arguments and end."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from .answers import ANTHROPIC, CHAT, RESPONSES
from .shapes import TOOL, Shape

STAMPS = re.compile(rb"(\d+):(\d{10,20});")


class Heard(msgspec.Struct):
    """The content of an answer for a client."""

    text: list[str] = msgspec.field(default_factory=list)
    tool: str = ""
    arguments: list[str] = msgspec.field(default_factory=list)
    reason: str = ""
    ended: bool = False


def wrong(protocol: str, shape: Shape, body: bytes, *, streamed: bool, told: str = "") -> str:
    """The error of an answer; empty if it is correct. Its text ends with the request's note."""
    try:
        return _wrong(shape, _READERS[protocol, streamed](body), body, told)
    except (msgspec.DecodeError, KeyError, IndexError, TypeError) as error:
        return f"unreadable: {error!r}: {body[:200]!r}"


def _wrong(shape: Shape, heard: Heard, body: bytes, told: str) -> str:
    if not heard.ended:
        return f"no proper end: {body[-200:]!r}"
    if shape.every_ms:
        found = [int(number) for number, _ in STAMPS.findall("".join(heard.text).encode())]
        return "" if found == list(range(shape.texts)) else f"{len(found)} of {shape.texts} events"
    if "".join(heard.text) != "".join(shape.pieces()) + told:
        return f"another text: {''.join(heard.text)[:100]!r}"
    return _wrong_call(shape, heard)


def _wrong_call(shape: Shape, heard: Heard) -> str:
    if not shape.fragments:
        return f"a call of {heard.tool}" if heard.tool else ""
    if heard.tool != TOOL:
        return f"no call of {TOOL}: {heard.tool!r}"
    if heard.reason not in ("tool_calls", "tool_use"):
        return f"ended for another reason: {heard.reason!r}"
    arguments = "".join(heard.arguments)
    return "" if msgspec.json.decode(arguments) == shape.call() else f"other arguments: {arguments[:100]!r}"


def _payloads(body: bytes) -> list[bytes]:
    lines = body.replace(b"\r\n", b"\n").split(b"\n")
    return [line[5:].strip() for line in lines if line.startswith(b"data:")]


def _chat_stream(body: bytes) -> Heard:
    heard = Heard()
    payloads = _payloads(body)
    heard.ended = bool(payloads) and payloads[-1] == b"[DONE]"
    for payload in payloads:
        if payload == b"[DONE]":
            continue
        for choice in msgspec.json.decode(payload)["choices"]:
            heard.reason = choice.get("finish_reason") or heard.reason
            _chat_message(heard, choice["delta"])
    return heard


def _chat_message(heard: Heard, message: dict[str, Any]) -> None:
    if message.get("content"):
        heard.text.append(message["content"])
    for call in message.get("tool_calls") or ():
        heard.tool = heard.tool or call["function"].get("name") or ""
        heard.arguments.append(call["function"].get("arguments") or "")


def _chat_body(body: bytes) -> Heard:
    heard = Heard(ended=True)
    choice = msgspec.json.decode(body)["choices"][0]
    heard.reason = choice["finish_reason"]
    _chat_message(heard, choice["message"])
    return heard


def _anthropic_stream(body: bytes) -> Heard:
    heard = Heard()
    payloads = _payloads(body)
    for payload in payloads:
        event = msgspec.json.decode(payload)
        match event["type"]:
            case "content_block_delta":
                delta = event["delta"]
                heard.text.append(delta.get("text", ""))
                heard.arguments.append(delta.get("partial_json", ""))
            case "content_block_start":
                heard.tool = heard.tool or event["content_block"].get("name", "")
            case "message_delta":
                heard.reason = event["delta"]["stop_reason"]
            case _:
                pass
        heard.ended = event["type"] == "message_stop"
    return heard


def _responses_stream(body: bytes) -> Heard:
    heard = Heard()
    for payload in _payloads(body):
        event = msgspec.json.decode(payload)
        match event["type"]:
            case "response.output_text.delta":
                heard.text.append(event["delta"])
            case "response.function_call_arguments.delta":
                heard.arguments.append(event["delta"])
            case "response.output_item.added":
                heard.tool = heard.tool or event["item"].get("name", "")
            case "response.completed":
                calls = [item for item in event["response"]["output"] if item["type"] == "function_call"]
                heard.reason = "tool_calls" if calls else "stop"
            case _:
                pass
        heard.ended = event["type"] == "response.completed"
    return heard


def _anthropic_body(body: bytes) -> Heard:
    answer = msgspec.json.decode(body)
    heard = Heard(ended=True, reason=answer["stop_reason"])
    for block in answer["content"]:
        if block["type"] == "text":
            heard.text.append(block["text"])
        else:
            heard.tool = block["name"]
            heard.arguments.append(msgspec.json.encode(block["input"]).decode())
    return heard


_READERS = {
    (CHAT, True): _chat_stream,
    (CHAT, False): _chat_body,
    (ANTHROPIC, True): _anthropic_stream,
    (ANTHROPIC, False): _anthropic_body,
    (RESPONSES, True): _responses_stream,
}
