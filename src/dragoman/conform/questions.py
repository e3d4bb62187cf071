"""The questions that are put to any endpoint, in neutral form."""

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
    """More than the 16 tokens it may say (Responses takes no smaller bound)."""
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
    """A request for a case of the corpus; the built-in upstream knows it by these words."""
    return _request(model, f"conformance-case:{id}").changed(tools=tools)


def results(asked: Request, protocol: str, answer: bytes) -> Request | None:
    """The next turn: the answer as it came, and a result for each of its calls. None where it made none."""
    said = parts_of(protocol, answer)
    calls = [part for part in said if isinstance(part, ToolCall)]
    if not calls:
        return None
    heard = tuple(
        ToolResult(call_id=call.id, name=call.name, parts=(Text("Sunny, 21 degrees."),)) for call in calls
    )
    turns = (*asked.messages, Message("assistant", said), Message("user", heard))
    settings = msgspec.structs.replace(asked.settings, tool_choice=None)
    return asked.changed(messages=turns, settings=settings)


def parts_of(protocol: str, answer: bytes) -> tuple[Part, ...]:
    """What an answer said, as its client keeps it, seals included."""
    reader, decoder = FrameReader(), protocol_named(protocol).decoder(ISSUER, False)
    events = [event for frame in reader.feed(answer) for event in decoder.frame(frame)]
    events += [event for frame in reader.close() for event in decoder.frame(frame)]
    return tuple(collect([*events, *decoder.close()]).parts)


def _request(model: str, words: str) -> Request:
    return Request(model=model, messages=(Message("user", (Text(words),)),), stream=True)
