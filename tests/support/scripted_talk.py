"""Conversations with the scripted model in every protocol."""

import json
from typing import Any

from dragoman import Target, protocol
from dragoman.conform.reduce import anthropic as reduce_anthropic
from dragoman.conform.reduce import openai_chat as reduce_chat
from dragoman.conform.reduce import openai_responses as reduce_responses
from dragoman.conform.scripted import Reply, ScriptedModel
from dragoman.conform.shape import Neutral, ReducedAnswer
from dragoman.model.messages import Message, Request, Settings, Text, ToolCall, ToolResult

from .exchanges import declared
from .scenarios import TOOLS
from .wires import ANTHROPIC, CHAT

WEATHER = "What is the weather in Rome, for 3 days?"
WEATHER_TOOL = {
    "name": "get_weather",
    "description": "Current weather",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "hours": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["city", "days"],
    },
}
OFFERED = declared([WEATHER_TOOL, *(tool for tool in TOOLS if tool["name"] != "get_weather")])
CALL = ("get_weather", {"city": "Rome", "days": 3})
GENEROUS = ("get_weather", {"city": "Rome", "days": 3, "hours": [3]})
SECOND_CALL = ("get_weather", {"city": "Paris", "days": 10})
NEVER = ("demo-stall", "demo-hang", "demo-endless")
"""The models whose answers do not end."""


def question(model: str = "demo", text: str = WEATHER, **more: Any) -> Request:
    """A request with tools. The default text asks for `CALL`."""
    more.setdefault("settings", Settings(max_tokens=1000))
    return Request(model=model, messages=(Message("user", (Text(text),)),), tools=OFFERED, **more)


def written(name: str, request: Request) -> tuple[str, bytes]:
    """The request as a client of the protocol posts it: path and body."""
    outgoing = protocol(name).write_request(request, Target(model=request.model, issuer="scripted"))
    return outgoing.path, json.dumps(outgoing.body).encode()


def reply_to(name: str, request: Request, model: ScriptedModel | None = None) -> Reply:
    path, body = written(name, request)
    return (model or ScriptedModel(clock=lambda: 1_800_000_000)).answer(name, path, body)


def sent(reply: Reply) -> bytes:
    """All bytes of a reply that ends."""
    return b"".join(step for step in reply.steps if isinstance(step, bytes))


def answered(request: Request, said: tuple[Any, ...], result: str, *, is_error: bool = False) -> Request:
    """The next turn of an agent that ran the requested tools."""
    calls = [part for part in said if isinstance(part, ToolCall)]
    results = tuple(
        ToolResult(call_id=call.id, name=call.name, parts=(Text(result),), is_error=is_error)
        for call in calls
    )
    turn = (Message("assistant", said), Message("user", results))
    return request.changed(messages=(*request.messages, *turn))


def parts_of(said: Neutral) -> tuple[Any, ...]:
    """The parts of an answer for the agent's history."""
    calls = [
        ToolCall(id=call["id"], name=call["name"], arguments=json.dumps(call["arguments"]))
        for call in said["tool_calls"]
    ]
    return (Text(said["text"]), *calls)


def calls_of(said: Neutral) -> list[tuple[str, Any]]:
    return [(call["name"], call["arguments"]) for call in said["tool_calls"]]


def through_sdk(name: str, sdk: Any, request: Request) -> Neutral:
    """The answer as the official SDK reads it over its own connection. Gemini's accepts no raw bodies."""
    _, data = written(name, request)
    body = json.loads(data)
    read = {ANTHROPIC: _anthropic, CHAT: _chat}.get(name, _responses)
    return read(sdk, body, request.stream).as_dict()


def _anthropic(sdk: Any, body: dict[str, Any], stream: bool) -> ReducedAnswer:
    if not stream:
        return reduce_anthropic.answer_of(sdk.messages.create(**body).to_dict())
    body.pop("stream")
    with sdk.messages.stream(**body) as helper:
        return reduce_anthropic.answer_of(helper.get_final_message().to_dict())


def _chat(sdk: Any, body: dict[str, Any], stream: bool) -> ReducedAnswer:
    said = sdk.chat.completions.create(**body)
    if not stream:
        return reduce_chat.answer_of(said.to_dict())
    return reduce_chat.answer_of_chunks([chunk.to_dict() for chunk in said])


def _responses(sdk: Any, body: dict[str, Any], stream: bool) -> ReducedAnswer:
    said = sdk.responses.create(**body)
    if not stream:
        return reduce_responses.answer_of(said.to_dict())
    return reduce_responses.answer_of_events(event.to_dict() for event in said)
