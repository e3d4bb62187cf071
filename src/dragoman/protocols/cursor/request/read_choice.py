"""Read the tool choice, in the form of any protocol."""

from __future__ import annotations

from ....model.messages import Tool, ToolChoice
from ...anthropic.request.read_tools import read_tool_choice as read_anthropic
from ...common.fields import Obj, is_object
from ...openai_chat.request.read_tools import read_choice as read_chat
from ...openai_responses.request.read_tools import read_tool_choice as read_responses
from .shapes import ANTHROPIC, NONE, RESPONSES, choice_shape

_Read = tuple[ToolChoice | None, bool | None]


def read_choice(body: Obj, tools: tuple[Tool, ...]) -> _Read:
    """The tool choice, and whether calls may be parallel (Anthropic's choice includes that)."""
    choice = body.get("tool_choice")
    if is_object(choice):
        return _object(choice, tools)
    if isinstance(choice, str):
        return _word(choice, tools), None
    legacy = {key: body[key] for key in ("tool_choice", "function_call") if key in body}
    return read_chat(legacy, tools), None


def _word(word: str, tools: tuple[Tool, ...]) -> ToolChoice | None:
    if word == "any":
        return ToolChoice("required")
    if any(tool.name == word for tool in tools):
        return ToolChoice("named", word)
    return read_chat({"tool_choice": word}, tools)


def _object(choice: Obj, tools: tuple[Tool, ...]) -> _Read:
    shape = choice_shape(choice)
    if shape == NONE:
        choice = _understood(choice)
        shape = choice_shape(choice)
    body = {"tool_choice": choice}
    if shape == ANTHROPIC:
        return read_anthropic(body, tools)
    if shape == RESPONSES:
        return read_responses(body, tools, lenient=False), None
    return read_chat(body, tools), None


def _understood(choice: Obj) -> Obj:
    """Complete a choice without a type (`{"function": {"name"}}`, `{"name"}`), or with OpenAI's value."""
    if choice.get("type") == "required":
        return {**choice, "type": "any"}
    for kind in ("function", "custom"):
        if is_object(choice.get(kind)):
            return {**choice, "type": kind}
    return {**choice, "type": "tool"}
