"""A conversation with each official SDK as agent authors write it: ask, run the tool, continue.

The SDK's own objects are sent back, so members that the SDK does not know are lost, as in real agents.
"""

import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from google.genai import types

from . import sdk_clients
from .wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

QUESTION = "What is the weather in Rome, for 3 days?"
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
}
TOOL = {"name": "get_weather", "description": "Current weather"}


@cache
def _client(protocol: str, url: str) -> Any:
    """One client per server: its TLS setup takes longer than a whole conversation."""
    return sdk_clients.client(protocol, url, shared=True)


@dataclass
class Turn:
    """The answer to one request, read from the SDK's own objects."""

    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)


class AnthropicTalk:
    def __init__(self, url: str, model: str, *, stream: bool) -> None:
        self.sdk = _client(ANTHROPIC, url)
        self.stream = stream
        self.history: list[Any] = []
        self.settings: dict[str, Any] = {"model": model, "max_tokens": 4000}

    def ask(self, text: str, *, tools: bool = True, think: bool = False) -> Turn:
        if tools:
            self.settings["tools"] = [{**TOOL, "input_schema": SCHEMA}]
        if think:
            self.settings["thinking"] = {"type": "enabled", "budget_tokens": 2000}
        return self._say(text)

    def answer(self, turn: Turn, result: str) -> Turn:
        return self._say([{"type": "tool_result", "tool_use_id": id, "content": result} for id in turn.ids])

    def _say(self, content: Any) -> Turn:
        self.history.append({"role": "user", "content": content})
        if self.stream:
            with self.sdk.messages.stream(**self.settings, messages=self.history) as helper:
                message = helper.get_final_message()
        else:
            message = self.sdk.messages.create(**self.settings, messages=self.history)
        self.history.append({"role": "assistant", "content": message.content})
        assert message.usage.output_tokens > 0
        turn = Turn()
        for block in message.content:
            turn.text += block.text if block.type == "text" else ""
            turn.thinking += block.thinking if block.type == "thinking" else ""
            if block.type == "tool_use":
                turn.calls.append((block.name, block.input))
                turn.ids.append(block.id)
        assert message.stop_reason == ("tool_use" if turn.calls else "end_turn")
        return turn


class ChatTalk:
    def __init__(self, url: str, model: str, *, stream: bool) -> None:
        self.sdk = _client(CHAT, url)
        self.stream = stream
        self.history: list[Any] = []
        self.settings: dict[str, Any] = {"model": model}

    def ask(self, text: str, *, tools: bool = True, think: bool = False) -> Turn:
        if tools:
            self.settings["tools"] = [{"type": "function", "function": {**TOOL, "parameters": SCHEMA}}]
        if think:
            self.settings["reasoning_effort"] = "high"
        self.history.append({"role": "user", "content": text})
        return self._say()

    def answer(self, turn: Turn, result: str) -> Turn:
        self.history += [{"role": "tool", "tool_call_id": id, "content": result} for id in turn.ids]
        return self._say()

    def _say(self) -> Turn:
        thinking = ""
        if self.stream:
            with self.sdk.chat.completions.stream(**self.settings, messages=self.history) as events:
                for event in events:
                    if event.type == "chunk" and event.chunk.choices:
                        thinking += getattr(event.chunk.choices[0].delta, "reasoning_content", None) or ""
                choice = events.get_final_completion().choices[0]
        else:
            choice = self.sdk.chat.completions.create(**self.settings, messages=self.history).choices[0]
            thinking = getattr(choice.message, "reasoning_content", None) or ""
        message = choice.message
        self.history.append(message)
        turn = Turn(text=message.content or "", thinking=thinking)
        for call in message.tool_calls or []:
            turn.calls.append((call.function.name, json.loads(call.function.arguments)))
            turn.ids.append(call.id)
        assert choice.finish_reason == ("tool_calls" if turn.calls else "stop")
        return turn


class ResponsesTalk:
    def __init__(self, url: str, model: str, *, stream: bool) -> None:
        self.sdk = _client(RESPONSES, url)
        self.stream = stream
        self.history: list[Any] = []
        self.settings: dict[str, Any] = {"model": model, "store": False}

    def ask(self, text: str, *, tools: bool = True, think: bool = False) -> Turn:
        if tools:
            self.settings["tools"] = [{"type": "function", **TOOL, "parameters": SCHEMA, "strict": False}]
        if think:
            self.settings |= {"reasoning": {"effort": "high"}, "include": ["reasoning.encrypted_content"]}
        self.history.append({"role": "user", "content": text})
        return self._say()

    def answer(self, turn: Turn, result: str) -> Turn:
        self.history += [{"type": "function_call_output", "call_id": id, "output": result} for id in turn.ids]
        return self._say()

    def _say(self) -> Turn:
        if self.stream:
            with self.sdk.responses.stream(**self.settings, input=self.history) as events:
                for _ in events:
                    pass
                response = events.get_final_response()
        else:
            response = self.sdk.responses.create(**self.settings, input=self.history)
        assert response.status == "completed"
        self.history += response.output
        turn = Turn(text=response.output_text)
        for item in response.output:
            if item.type == "function_call":
                turn.calls.append((item.name, json.loads(item.arguments)))
                turn.ids.append(item.call_id)
            elif item.type == "reasoning":
                turn.thinking += "".join(part.text for part in [*item.summary, *(item.content or [])])
        return turn


class GeminiTalk:
    def __init__(self, url: str, model: str, *, stream: bool) -> None:
        self.sdk = _client(GEMINI, url)
        self.model = model
        self.stream = stream
        self.history: list[Any] = []
        self.config: dict[str, Any] = {"automatic_function_calling": {"disable": True}}

    def ask(self, text: str, *, tools: bool = True, think: bool = False) -> Turn:
        if tools:
            declared = {**TOOL, "parameters_json_schema": SCHEMA}
            self.config["tools"] = [{"function_declarations": [declared]}]
        if think:
            self.config["thinking_config"] = {"include_thoughts": True}
        self.history.append(types.UserContent(text))
        return self._say()

    def answer(self, turn: Turn, result: str) -> Turn:
        parts = [
            types.Part(function_response={"id": id, "name": name, "response": {"output": result}})
            for id, (name, _) in zip(turn.ids, turn.calls, strict=True)
        ]
        self.history.append(types.Content(role="user", parts=parts))
        return self._say()

    def _say(self) -> Turn:
        models = self.sdk.models
        asked: dict[str, Any] = {"model": self.model, "contents": self.history, "config": self.config}
        said = models.generate_content_stream(**asked) if self.stream else [models.generate_content(**asked)]
        parts: list[Any] = []
        finish: Any = None
        for chunk in said:
            candidate = chunk.candidates[0]
            parts += (candidate.content and candidate.content.parts) or []
            finish = candidate.finish_reason or finish
        assert finish == types.FinishReason.STOP
        self.history.append(types.Content(role="model", parts=parts))
        turn = Turn()
        for part in parts:
            if part.thought:
                turn.thinking += part.text or ""
            elif part.function_call:
                turn.calls.append((part.function_call.name, part.function_call.args))
                turn.ids.append(part.function_call.id)
            else:
                turn.text += part.text or ""
        return turn


TALKS: dict[str, Any] = {
    ANTHROPIC: AnthropicTalk,
    CHAT: ChatTalk,
    RESPONSES: ResponsesTalk,
    GEMINI: GeminiTalk,
}
