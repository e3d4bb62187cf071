"""`ToolLoop` with the `google-genai` SDK: its requests and the shape of its history.

The history keeps the SDK's own objects: their signatures are bytes, which do not survive a dump to JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..adapters import Adapter, Entry, ToolAnswer, as_text, with_tools
from ..calls import Finished
from ..history import Obj, by_id, native, parsed


class Gemini:
    """`client.models` of the `google-genai` SDK."""

    protocol = "gemini"
    sdk = "google"

    def create(self, client: Any, stream: bool, is_async: bool) -> Callable[..., Any]:
        models = (client.aio if is_async else client).models
        return models.generate_content_stream if stream else models.generate_content

    def request(self, history: list[Entry], tools: list[Any], settings: dict[str, Any]) -> dict[str, Any]:
        config: Any = settings.get("config") or ()
        fields: dict[str, Any] = dict(
            config
        )  # a dict, or the SDK's object, which iterates over its fields as pairs
        given = {name: value for name, value in fields.items() if value is not None}
        return settings | {"contents": history, "config": given | with_tools(given, tools)}

    def prompt(self, text: str) -> Entry:
        return {"role": "user", "parts": [{"text": text}]}

    def turn(self, received: Sequence[Any], calls: Sequence[Finished]) -> list[Entry]:
        contents = [chunk.candidates[0].content for chunk in received if chunk.candidates]
        contents = [content for content in contents if content is not None and content.parts]
        parts = gemini_parts(contents, calls)
        return [type(contents[0])(role="model", parts=parts)] if parts else []

    def results(self, answers: Sequence[ToolAnswer]) -> list[Entry]:
        return [{"role": "user", "parts": [_gemini_result(answer) for answer in answers]}]


def _gemini_result(answer: ToolAnswer) -> dict[str, Any]:
    call = answer.call
    if call.recovered:
        return {"text": as_text(answer)}
    response = {"error" if answer.is_error else "output": answer.text}
    given = {"id": call.given_id} if call.given_id else {}
    return {"function_response": {**given, "name": call.given_name, "response": response}}


def gemini_parts(contents: Iterable[Any], calls: Sequence[Finished]) -> list[Any]:
    """The parts of one answer. The pieces of a streamed call become one part."""
    waiting = native(calls)
    parts: list[Any] = []
    for part in (part for content in contents for part in content.parts):
        if part.function_call is not None:
            call = by_id(waiting, part.function_call.id or "")
            if part.function_call.name and call is not None:
                waiting.remove(call)
                parts.append(_called(part, call))
        elif part.text != "" or part.thought_signature:
            parts.append(part)
    return parts


def _called(part: Any, call: Finished) -> Any:
    if part.function_call.args:
        return part
    changes: Obj = {
        "args": parsed(call.raw) or call.arguments or {},
        "partial_args": None,
        "will_continue": None,
    }
    return part.model_copy(update={"function_call": part.function_call.model_copy(update=changes)})


ADAPTER: Adapter = Gemini()
