"""The request settings that a response repeats.

Every response object of OpenAI repeats the settings that applied. The Open Responses specification requires
these members, so a client that validates the object fails without them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.messages import Request
from ...common.fields import Obj, is_object
from ..own import is_own

# OpenAI's default for each member that the request does not set.
DEFAULTS: dict[str, Any] = {
    "previous_response_id": None,
    "instructions": None,
    "tools": [],
    "tool_choice": "auto",
    "truncation": "disabled",
    "parallel_tool_calls": True,
    "text": {"format": {"type": "text"}},
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "temperature": 1.0,
    "reasoning": {"effort": None, "summary": None},
    "max_output_tokens": None,
    "max_tool_calls": None,
    "store": True,
    "background": False,
    "service_tier": "default",
    "metadata": {},
    "user": None,
    "safety_identifier": None,
    "prompt_cache_key": None,
}
# OpenAI adds these members to a function tool that does not set them, and the specification requires them.
_FUNCTION: Obj = {"description": None, "parameters": None, "strict": None}
# `auto` asks the server to choose the tier, and the response names the chosen one.
_CHOSEN_BY_SERVER = {"service_tier": "auto"}

_decode_tools = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode


def echoed_settings(request: Request) -> dict[str, Any]:
    """The members of a Responses request that the response repeats, as the client sent them."""
    if not is_own(request.raw):
        return {}
    body: Obj = request.raw.value
    echo = {name: body[name] for name in DEFAULTS if body.get(name) is not None}
    for name, value in _CHOSEN_BY_SERVER.items():
        if echo.get(name) == value:
            del echo[name]
    for name in ("text", "reasoning"):
        if is_object(echo.get(name)):
            echo[name] = {**DEFAULTS[name], **echo[name]}
    if "tools" in echo:
        echo["tools"] = [_declared(tool) for tool in _decode_tools(msgspec.json.encode(echo["tools"]))]
    return echo


def _declared(tool: dict[str, msgspec.Raw]) -> Obj:
    """A tool as the client declared it, plus the members that the specification requires of functions."""
    kind = tool.get("type")
    return {**_FUNCTION, **tool} if kind is not None and bytes(kind) == b'"function"' else {**tool}
