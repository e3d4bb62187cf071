"""Reads answers with the `anthropic` SDK."""

from functools import cache
from typing import Any

import anthropic

from dragoman.conform.reduce import anthropic as reduce_anthropic
from dragoman.conform.shape import ReducedAnswer, ReducedCall, error_message

from .oracle_transport import Wire

WIRE = Wire()
_ASKED: dict[str, Any] = {
    "model": "m",
    "max_tokens": 1024,
    "messages": [{"role": "user", "content": "x"}],
}


@cache
def _client() -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="k", max_retries=0, http_client=WIRE.client)


def stream() -> ReducedAnswer:
    raw: dict[int, str] = {}
    helper: Any = None
    try:
        with _client().messages.stream(**_ASKED) as helper:
            for event in helper:
                if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
                    raw[event.index] = raw.get(event.index, "") + event.delta.partial_json
            return _reduced(helper.get_final_message(), raw)
    except anthropic.APIStatusError as error:
        return _failed(error, _so_far(helper, raw))


def whole() -> ReducedAnswer:
    try:
        return _reduced(_client().messages.create(**_ASKED), None)
    except anthropic.APIStatusError as error:
        return _failed(error, ReducedAnswer())


def _reduced(message: Any, raw: dict[int, str] | None) -> ReducedAnswer:
    """The SDK shows only the parsed part of a cut call, so its raw text is used."""
    answer = reduce_anthropic.answer_of(message.to_dict(warnings=False))
    if raw is not None:
        indexes = [i for i, block in enumerate(message.content) if block.type == "tool_use"]
        for index, call in zip(indexes, answer.calls, strict=True):
            _restore(call, raw.get(index))
    return answer


def _restore(call: ReducedCall, raw: str | None) -> None:
    if raw is None:
        return
    call.raw = raw
    whole = ReducedCall(call.id, call.name, raw).as_dict()["arguments"]
    call.complete = isinstance(whole, dict) or not raw


def _so_far(helper: Any, raw: dict[int, str]) -> ReducedAnswer:
    try:
        return _reduced(helper.current_message_snapshot, raw)
    except (AssertionError, AttributeError):
        # The error came before the message, or instead of the stream.
        return ReducedAnswer()


def _failed(error: anthropic.APIStatusError, answer: ReducedAnswer) -> ReducedAnswer:
    body: Any = error.body
    answer.fail(error_message(body["error"]))
    answer.raised = True
    return answer
