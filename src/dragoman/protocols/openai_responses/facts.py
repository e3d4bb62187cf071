"""Facts about OpenAI Responses: its paths, counts, tools, and how its servers behave."""

from __future__ import annotations

from typing import Any

from ..common.fields import is_object
from ..facts import (
    BaseUrlRule,
    Compaction,
    Counting,
    Endpoints,
    Headers,
    Obj,
    ReasoningReplay,
    SdkObjects,
    Server,
    ToolForm,
    output_limiter,
    without,
)
from . import compaction
from .request.read_tools import read_tool

# OpenAI's `input_tokens` endpoint rejects these members.
_ABOUT_THE_ANSWER = (
    "max_output_tokens", "stream", "temperature", "top_p", "top_logprobs", "store", "include",
    "metadata", "service_tier", "background", "max_tool_calls", "prompt_cache_key",
    "prompt_cache_retention", "safety_identifier", "stream_options", "user",
)  # fmt: skip


def _claims(path: str, headers: Headers) -> bool:
    return "/responses" in path


def _asks_for_encrypted(body: Obj) -> bool:
    return "reasoning.encrypted_content" in (body.get("include") or ())


def _is_tool(tool: Obj) -> bool:
    kind = tool.get("type")
    if kind is None or (kind in ("function", "custom") and is_object(tool.get(kind))):
        return False
    format: Any = tool.get("format")
    nested = is_object(format) and format.get("type") == "grammar" and is_object(format.get("grammar"))
    return kind != "custom" or not nested


def _is_whole(frame: Obj, event: str) -> bool | None:
    kind, whole = frame.get("type"), frame.get("object") == "response"
    kind = kind if isinstance(kind, str) else event
    return whole if whole or kind.startswith("response.") else None


ENDPOINTS = Endpoints(answers=("/responses",), claims=_claims)
COMPACTION = Compaction(
    suffix="/compact",
    trigger=compaction.TRIGGER,
    part=compaction.compaction_part,
    to_request=compaction.compaction_request,
    to_answer=compaction.compaction_answer,
)
COUNTING = Counting(
    suffix="/input_tokens",
    body=without(*_ABOUT_THE_ANSWER),
    around={"object": "response.input_tokens"},
)
REASONING = ReasoningReplay(seals=True, thoughts=True, asked_for=_asks_for_encrypted)
limit_output = output_limiter("max_output_tokens")
ADDRESS = BaseUrlRule(endpoint=r"/responses$", family="openai")
OPEN_HEADERS = ("openai-beta",)


TOOLS = ToolForm(fits=_is_tool, read=read_tool)
SDK = SdkObjects(whole=_is_whole)
SERVER = Server(
    block=lambda frame: frame.get("output_index"),
    numbered=lambda frame, number: frame | {"sequence_number": number},
    seal=lambda data, seed: (data, f"rs_{seed}"),
)
