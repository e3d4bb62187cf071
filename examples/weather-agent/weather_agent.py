"""A tiny agent: it answers a question, and may look up the weather on the way."""

from typing import Any

import anthropic

MODEL = "weather-model"  # a route of the gateway, or the name of a model
TOOL: Any = {
    "name": "get_weather",
    "description": "The weather in a city for some days",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
    },
}
MOST_TURNS = 5


def get_weather(city: str, days: int) -> str:
    return f"{city}: sunny for {days} days"


def answer(question: str) -> str:
    """Ask the model until it needs no more tools. The SDK reads ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY."""
    client = anthropic.Anthropic(max_retries=1)
    messages: list[Any] = [{"role": "user", "content": question}]
    for _ in range(MOST_TURNS):
        with client.messages.stream(model=MODEL, max_tokens=1000, tools=[TOOL], messages=messages) as stream:
            said = stream.get_final_message()
        messages.append({"role": "assistant", "content": said.content})
        calls = [block for block in said.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in said.content if block.type == "text")
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": get_weather(**call.input)}
            for call in calls
        ]
        messages.append({"role": "user", "content": results})
    raise RuntimeError("the model did not come to an end")
