"""Validates request bodies with the official SDKs' types: every field must be known.

The checks are as strict as each SDK allows. `CHECKS[protocol](body)` raises if the body is invalid. Protocols
without an SDK are not in the table.
"""

import json
from collections.abc import Callable
from typing import Any

from anthropic.types import message_create_params
from google.genai import types as genai
from openai.types.chat import completion_create_params
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming
from pydantic import TypeAdapter

Json = dict[str, Any]

_ANTHROPIC = TypeAdapter[Any](
    message_create_params.MessageCreateParamsNonStreaming | message_create_params.MessageCreateParamsStreaming
)
_CHAT = {
    True: TypeAdapter[Any](completion_create_params.CompletionCreateParamsStreaming),
    False: TypeAdapter[Any](completion_create_params.CompletionCreateParamsNonStreaming),
}
_RESPONSES = TypeAdapter[Any](ResponseCreateParamsNonStreaming)


def drained(value: Any) -> Any:
    """Read lazy iterators, because pydantic validates them only then."""
    if isinstance(value, dict):
        return {key: drained(member) for key, member in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return [drained(member) for member in value]


def check_anthropic(body: Json) -> None:
    """Ignores fields of the older API version, which the SDK no longer has."""
    known = {k: v for k, v in body.items() if k not in ("temperature", "top_p", "top_k")}
    assert drained(_ANTHROPIC.validate_python(known)) == known


def check_chat(body: Json) -> None:
    """Ignores reasoning, which is in no spec. Validation removes unknown fields, which then differ."""
    messages = [{k: v for k, v in m.items() if not k.startswith("reasoning")} for m in body["messages"]]
    known = body | {"messages": messages}
    assert drained(_CHAT[body.get("stream", False)].validate_python(known)) == known


def check_responses(body: Json) -> None:
    known = {k: v for k, v in body.items() if k != "stream"}
    known["input"] = [_with_ids(item) for item in body["input"]]
    if "input_audio" not in json.dumps(known):  # in no union of the SDK's
        assert set(drained(_RESPONSES.validate_python(known))) == set(known)


def _with_ids(item: Json) -> Json:
    """The SDK's types require ids that the API does not."""
    if item.get("role") == "assistant":
        return {"id": "msg_1", "status": "completed", **item}
    return {"id": "rs_1", **item} if item.get("type") == "reasoning" else item


def check_gemini(body: Json) -> None:
    """Google's own types forbid unknown members."""
    checked = json.loads(json.dumps(body))
    for content in checked["contents"]:
        genai.Content.model_validate(content)
        assert content["parts"]
    if "systemInstruction" in checked:
        genai.Content.model_validate(checked["systemInstruction"])
    for tool in checked.get("tools", ()):
        genai.Tool.model_validate(tool)
    genai.ToolConfig.model_validate(checked.get("toolConfig", {}))
    genai.GenerationConfig.model_validate(checked.get("generationConfig", {}))


CHECKS: dict[str, Callable[[Json], None]] = {
    "anthropic": check_anthropic,
    "openai-chat": check_chat,
    "openai-responses": check_responses,
    "gemini": check_gemini,
}
