"""Reads answers with the `openai` SDK, Chat Completions and Responses."""

from functools import cache
from typing import Any

import openai

from dragoman.conform.reduce import openai_chat as reduce_chat
from dragoman.conform.reduce import openai_responses as reduce_responses
from dragoman.conform.shape import Json, ReducedAnswer, error_message

from .oracle_transport import Wire

WIRE = Wire()
_CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
_RESPONSES: dict[str, Any] = {"model": "m", "input": "x"}


@cache
def _client() -> openai.OpenAI:
    return openai.OpenAI(api_key="k", max_retries=0, http_client=WIRE.client)


def chat_helper() -> ReducedAnswer:
    """`chat.completions.stream`. It fails on all freeform calls."""
    helper: Any = None
    try:
        with _client().chat.completions.stream(**_CHAT) as helper:
            for _ in helper:
                pass
            return reduce_chat.answer_of(_as_json(helper.get_final_completion()))
    except (openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError):
        # The SDK raises for these endings; the complete answer is in the exception.
        return _chat_so_far(helper)
    except openai.APIError as error:
        return _failed(error, _chat_so_far(helper))


def chat_iterator() -> ReducedAnswer:
    """`chat.completions.create(stream=True)`: the chunks, joined here."""
    chunks: list[Json] = []
    try:
        for chunk in _client().chat.completions.create(stream=True, **_CHAT):
            chunks.append(_as_json(chunk))  # noqa: PERF401 (keeps what came before an error)
    except openai.APIError as error:
        return _failed(error, reduce_chat.answer_of_chunks(chunks))
    return reduce_chat.answer_of_chunks(chunks)


def chat_whole() -> ReducedAnswer:
    try:
        completion = _client().chat.completions.create(**_CHAT)
    except openai.APIError as error:
        return _failed(error, ReducedAnswer())
    return reduce_chat.answer_of(_as_json(completion))


def responses_helper() -> ReducedAnswer:
    """`responses.stream`. It returns a final response only if it is completed."""
    seen: list[Any] = []
    try:
        with _client().responses.stream(**_RESPONSES) as helper:
            for event in helper:
                seen.append(event)  # noqa: PERF402 (keeps what came before an error)
            if seen and seen[-1].type == "response.completed":
                return reduce_responses.answer_of(_as_json(helper.get_final_response()))
    except openai.APIError as error:
        return _failed(error, reduce_responses.answer_of_events(map(_as_json, seen)))
    return reduce_responses.answer_of_events(map(_as_json, seen))


def responses_whole() -> ReducedAnswer:
    try:
        response = _client().responses.create(**_RESPONSES)
    except openai.APIError as error:
        return _failed(error, ReducedAnswer())
    return reduce_responses.answer_of(_as_json(response))


def _as_json(model: Any) -> Json:
    # The SDK's own parsed types do not fit the unions it declares them in.
    return model.to_dict(warnings=False)


def _chat_so_far(helper: Any) -> ReducedAnswer:
    try:
        completion = _as_json(helper.current_completion_snapshot)
    except (AssertionError, AttributeError):
        # The error came before the first chunk, or instead of the stream.
        return ReducedAnswer()
    for choice in completion["choices"]:
        choice.setdefault("finish_reason", None)
    return reduce_chat.answer_of(completion)


def _failed(error: openai.APIError, answer: ReducedAnswer) -> ReducedAnswer:
    answer.fail(error_message(error.body) if error.body else error.message)
    answer.raised = True
    return answer
