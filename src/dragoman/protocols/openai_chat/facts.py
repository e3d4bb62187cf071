"""Facts about OpenAI Chat Completions: its paths, tools, and how its servers behave."""

from __future__ import annotations

from typing import Any

import msgspec

from ...model.messages import Tool
from ..common.fields import is_object
from ..facts import BaseUrlRule, Endpoints, Obj, SdkObjects, Server, ToolForm
from .other_endpoints import OTHERS
from .request.read_tools import read_tool
from .request.wire import is_nothing


def _is_tool(tool: Obj) -> bool:
    kind = tool.get("type")
    if kind == "function":
        return is_object(tool.get("function"))
    custom: Any = tool.get("custom")
    return kind == "custom" and is_object(custom) and not _has_flat_grammar(custom)


def _has_flat_grammar(custom: Obj) -> bool:
    """Is the grammar next to the format's type, as in Responses? Chat nests it in an object."""
    format: Any = custom.get("format")
    return is_object(format) and format.get("type") == "grammar" and not is_object(format.get("grammar"))


def _read_tool(raw: msgspec.Raw, where: str) -> list[Tool]:
    return [read_tool(raw, where)]


def limit_output(body: Obj, most: int, budget: int | None) -> Obj:
    """`body`, which is not decoded, with another output limit."""
    bounds = ("max_tokens", "max_completion_tokens")
    return {**body, **{key: most for key in bounds if not is_nothing(body.get(key))}}


def _is_whole(frame: Obj, event: str) -> bool | None:
    kind = frame.get("object")
    if "choices" in frame or str(kind).startswith("chat.completion"):
        return kind == "chat.completion"
    return None


def _block(frame: Obj) -> int | None:
    choices: list[Obj] = frame.get("choices") or []
    calls: list[Obj] = choices[0]["delta"].get("tool_calls", []) if choices else []
    return calls[0]["index"] if calls else None


def _seal(data: str, seed: str) -> tuple[str, None]:
    """A seal in OpenRouter's form: a list of `reasoning_details`."""
    detail = {"type": "reasoning.encrypted", "data": data, "format": "scripted-v1"}
    return msgspec.json.encode([detail]).decode(), None


ENDPOINTS = Endpoints(answers=("/chat/completions",), others=OTHERS)
ADDRESS = BaseUrlRule(endpoint=r"/chat/completions$", family="openai")
# Most Chat servers are not OpenAI's, and do not support OpenAI's newer members.
DEFAULTS = {"chat_compatible": True, "max_tokens_field": "max_tokens"}
OPEN_HEADERS = ("openai-beta",)
TOOLS = ToolForm(fits=_is_tool, read=_read_tool)
SDK = SdkObjects(whole=_is_whole)
SERVER = Server(keeps_cut_calls=True, block=_block, seal=_seal, wants_seals=False)
