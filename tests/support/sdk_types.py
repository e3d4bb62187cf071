"""What the official SDKs' types say of a request body: every field must be one they know.

The checks are as strict as each SDK allows. `CHECKS[protocol](body)` raises if the body does not fit; a
protocol without an SDK to ask is not in the table.
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
    """Validated values with their lazy iterators read, which is when these are validated."""
    if isinstance(value, dict):
        return {key: drained(member) for key, member in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return [drained(member) for member in value]


def check_anthropic(body: Json) -> None:
    """All but the fields of the older API version, which the SDK has forgotten."""
    known = {k: v for k, v in body.items() if k not in ("temperature", "top_p", "top_k")}
    assert drained(_ANTHROPIC.validate_python(known)) == known


def check_chat(body: Json) -> None:
    """All but reasoning, which is in no spec; a field that the types do not know is gone."""
    messages = [{k: v for k, v in m.items() if not k.startswith("reasoning")} for m in body["messages"]]
    known = body | {"messages": messages}
    assert drained(_CHAT[body.get("stream", False)].validate_python(known)) == known


def check_responses(body: Json) -> None:
    known = {k: v for k, v in body.items() if k != "stream"}
    known["input"] = [_with_ids(item) for item in body["input"]]
    if "input_audio" not in json.dumps(known):  # in no union of the SDK's
        assert set(drained(_RESPONSES.validate_python(known))) == set(known)


def _with_ids(item: Json) -> Json:
    """The SDK's types want ids that the API does not ask for."""
    if item.get("role") == "assistant":
        return {"id": "msg_1", "status": "completed", **item}
    return {"id": "rs_1", **item} if item.get("type") == "reasoning" else item


def check_gemini(body: Json) -> None:
    """Google's own types forbid what they do not know."""
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
