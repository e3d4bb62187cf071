"""The requests of the trials, in neutral form."""

from __future__ import annotations

import msgspec

from ..model.messages import Message, Part, Request, Settings, Text, Tool, ToolCall, ToolChoice, ToolResult
from ..protocols.common.collect import collect
from ..protocols.registry import protocol as protocol_named
from ..wire.reader import FrameReader
from .client import ISSUER

WEATHER = Tool(
    name="get_weather",
    description="The weather forecast for one city.",
    parameters={
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "The city's name, such as Rome"},
            "days": {"type": "integer", "minimum": 1, "description": "How many days ahead"},
        },
        "required": ["city", "days"],
        "additionalProperties": False,
    },
)


def text(model: str) -> Request:
    return _request(model, "Say hello in one short sentence.")


def long_text(model: str) -> Request:
    """A request whose answer exceeds max_tokens. OpenAI Responses allows no limit below 16."""
    asked = _request(model, "Write the numbers from one to one hundred in words.")
    return asked.changed(settings=Settings(max_tokens=16))


def tool(model: str) -> Request:
    asked = _request(model, "What will the weather be in Rome for the next 3 days? Use get_weather.")
    return asked.changed(tools=(WEATHER,), settings=Settings(tool_choice=ToolChoice("required")))


def parallel(model: str) -> Request:
    asked = _request(
        model,
        "What will the weather be in Rome for 3 days, and in Oslo for 5 days? "
        "Call get_weather twice, for both cities at once, in this one turn.",
    )
    choice = Settings(tool_choice=ToolChoice("required"), parallel_tool_calls=True)
    return asked.changed(tools=(WEATHER,), settings=choice)


def case(model: str, id: str, tools: tuple[Tool, ...]) -> Request:
    """A request for a case of the corpus. The built-in upstream finds the case by this text."""
    return _request(model, f"conformance-case:{id}").changed(tools=tools)


def results(asked: Request, protocol: str, answer: bytes) -> Request | None:
    """The next turn: the unchanged answer, and a result for each call. None if the answer has no call."""
    parts = parts_of(protocol, answer)
    calls = [part for part in parts if isinstance(part, ToolCall)]
    if not calls:
        return None
    answers = tuple(
        ToolResult(call_id=call.id, name=call.name, parts=(Text("Sunny, 21 degrees."),)) for call in calls
    )
    turns = (*asked.messages, Message("assistant", parts), Message("user", answers))
    settings = msgspec.structs.replace(asked.settings, tool_choice=None)
    return asked.changed(messages=turns, settings=settings)


def parts_of(protocol: str, answer: bytes) -> tuple[Part, ...]:
    """The parts of an answer, as its client keeps them, with their seals."""
    reader, decoder = FrameReader(), protocol_named(protocol).decoder(ISSUER, False)
    events = [event for frame in reader.feed(answer) for event in decoder.frame(frame)]
    events += [event for frame in reader.close() for event in decoder.frame(frame)]
    return tuple(collect([*events, *decoder.close()]).parts)


def _request(model: str, words: str) -> Request:
    return Request(model=model, messages=(Message("user", (Text(words),)),), stream=True)
