"""Reads answers with the `google-genai` SDK."""

import base64
from functools import cache
from typing import Any

from google import genai
from google.genai import errors, types

from dragoman.conform.reduce import gemini as reduce_gemini
from dragoman.conform.shape import Json, ReducedAnswer

from .oracle_transport import Wire

WIRE = Wire()
_ASKED: dict[str, Any] = {"model": "m", "contents": "x"}


@cache
def _client() -> genai.Client:
    options = types.HttpOptions(httpx_client=WIRE.client)
    return genai.Client(api_key="k", http_options=options)


def stream() -> ReducedAnswer:
    chunks: list[Json] = []
    try:
        for chunk in _client().models.generate_content_stream(**_ASKED):
            chunks.append(_as_json(chunk))  # noqa: PERF401 (keeps what came before an error)
    except errors.APIError as error:
        return _failed(error, reduce_gemini.answer_of(chunks))
    return reduce_gemini.answer_of(chunks)


def whole() -> ReducedAnswer:
    try:
        response = _client().models.generate_content(**_ASKED)
    except errors.APIError as error:
        return _failed(error, ReducedAnswer())
    return reduce_gemini.answer_of([_as_json(response)])


def _failed(error: errors.APIError, answer: ReducedAnswer) -> ReducedAnswer:
    answer.fail(error.message or "")
    answer.raised = True
    return answer


def _as_json(response: types.GenerateContentResponse) -> Json:
    chunk = response.model_dump(mode="json", by_alias=True, exclude_none=True)
    shown = chunk.get("candidates", [])
    for candidate, dumped in zip(response.candidates or [], shown, strict=True):
        parts = (candidate.content and candidate.content.parts) or []
        for part, dumped_part in zip(parts, _parts(dumped), strict=True):
            if part.thought_signature is not None:
                # The SDK dumps the URL-safe alphabet; the wire has the plain one.
                signature = base64.b64encode(part.thought_signature).decode()
                dumped_part["thoughtSignature"] = signature
    return chunk


def _parts(candidate: Json) -> list[Json]:
    return candidate.get("content", {}).get("parts", [])
