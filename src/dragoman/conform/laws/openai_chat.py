"""The laws of OpenAI Chat Completions.

All chunks of a stream have the same id, object, created and model. The first delta has the role. Each
choice has one finish_reason and no delta after it. The usage chunk, if any, and [DONE] follow. Or a chunk
with an error comes before the finish_reason; after it, only [DONE] may come.
"""

from __future__ import annotations

from typing import Any

from ..shape import Json, entries
from .base import Complaints, Law
from .framing import (
    CALL_JSON,
    DONE,
    JSON,
    SHAPE,
    STREAM,
    UTF8,
    events,
    filled,
    finished_call,
    json_object,
    whole_number,
    whole_object,
)

# What breaks without each law was tried with openai-python 3.49: the comments name what its stream helper
# does.
NO_NAMES = Law("no-event-names", "events have no name: some readers skip events with a name")
HEAD = Law("completion-head", "object, id, model and created are present")
# A chunk with another `object` is skipped (Azure's asynchronous filter sends some).
CONSTANT = Law("constant-head", "id, object, created and model are the same in every chunk")
# IndexError if the first choice has index 1.
CHOICES = Law("choice-index", "there is a choice, and choices are numbered 0, 1, 2, …")
# A repeated role is concatenated: "assistantassistant".
ROLE = Law("role", "the role is assistant, and only the first delta has it")
TEXT = Law("text-fields", "content, refusal and reasoning are text or null")
# TypeError without an index, IndexError at a gap.
CALL_INDEX = Law("call-index", "tool calls are numbered 0, 1, 2, …")
# A repeated id or name is concatenated: "call_1call_1". Without `type`, there are no events for the call.
CALL_HEAD = Law("call-head", "id, type and name come in the first fragment of a call, and only there")
# Agents match results to calls by id.
CALL_ID = Law("call-id", "no two calls have the same id")
# Agents run calls only after `tool_calls`.
FINISH = Law("finish-reason", "one known finish_reason that fits the content, and no delta after it")
USAGE = Law("usage", "total_tokens is the sum of the others")
# Usage is lost if another chunk follows it. A stream without its end looks like a complete answer.
TERMINAL = Law("terminal-event", "[DONE] or an error ends the stream, with nothing after it")
# With `{"error": "text"}` or `{"detail": …}` the SDK shows no message.
ERROR = Law("error-form", "an error is {error: {message, type}}")

_COMPLETION = (HEAD, CHOICES, ROLE, TEXT, CALL_HEAD, CALL_ID, CALL_JSON, FINISH, USAGE, ERROR)
LAWS_OF_STREAMS = (*STREAM, NO_NAMES, CONSTANT, CALL_INDEX, TERMINAL, *_COMPLETION)
LAWS_OF_BODIES = (UTF8, JSON, SHAPE, *_COMPLETION)

_FINISH = {"stop", "length", "tool_calls", "content_filter", "function_call"}
_CUT = {"length", "content_filter"}
_CONSTANT = ("id", "object", "created", "model")
_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")


def check_stream(body: bytes) -> Complaints:
    complaints = Complaints()
    stream = _Stream(complaints)
    for number, event in enumerate(events(body, complaints)):
        complaints.at(f"event {number}", event.raw, event.offset)
        complaints.unless(event.name is None, NO_NAMES, f"has a name: {event.name}")
        complaints.unless(not stream.done, TERMINAL, "comes after [DONE]")
        if event.data == DONE:
            stream.done = True
            continue
        value = json_object(event.data, complaints)
        if value is None:
            continue
        with complaints.reading(SHAPE):
            stream.feed(value)
    complaints.at_end(body)
    with complaints.reading(SHAPE):
        stream.close()
    return complaints


def check_whole(body: bytes) -> Complaints:
    complaints = Complaints()
    value = whole_object(body, complaints)
    if value is None:
        return complaints
    with complaints.reading(SHAPE):
        if value.get("error"):
            check_error(complaints, value)
        else:
            _check_completion(complaints, value)
    return complaints


def check_error(complaints: Complaints, value: Json) -> None:
    with complaints.reading(ERROR):
        error = value["error"]
        complaints.unless(filled(error["message"]), ERROR, "the error has no message")
        complaints.unless(filled(error["type"]), ERROR, "the error has no type")


class _Stream:
    def __init__(self, complaints: Complaints) -> None:
        self.complain = complaints
        self.head: list[Any] | None = None
        self.choices: dict[int, _Choice] = {}
        self.usage_seen = False
        self.failed = False
        self.done = False

    def feed(self, chunk: Json) -> None:
        complain = self.complain
        complain.unless(not self.failed, TERMINAL, "comes after an error")
        complain.unless(not self.usage_seen, TERMINAL, "comes after the usage")
        if chunk.get("error"):
            self.failed = True
            finished = any(choice.finish for choice in self.choices.values())
            complain.unless(not finished, TERMINAL, "an error after the finish_reason")
            check_error(complain, chunk)
            return
        self._check_head(chunk)
        for choice in chunk["choices"]:
            self._choice(choice["index"]).feed(choice)
        if chunk.get("usage") is not None:
            self.usage_seen = True
            check_usage(complain, chunk["usage"])

    def close(self) -> None:
        if self.failed:
            return
        self.complain.unless(self.done, TERMINAL, "no [DONE]")
        self.complain.unless(self.choices, CHOICES, "no choice at all")
        for choice in self.choices.values():
            choice.close()

    def _choice(self, index: int) -> _Choice:
        if index not in self.choices:
            self.complain.unless(index == len(self.choices), CHOICES, f"choice {index} out of turn")
            self.choices[index] = _Choice(self.complain)
        return self.choices[index]

    def _check_head(self, chunk: Json) -> None:
        head = [chunk[name] for name in _CONSTANT]
        if self.head is None:
            self.head = head
            _check_ids(self.complain, chunk, "chat.completion.chunk")
        for name, old, new in zip(_CONSTANT, self.head, head, strict=True):
            self.complain.unless(old == new, CONSTANT, f"{name} changed from {old!r} to {new!r}")


class _Choice:
    def __init__(self, complaints: Complaints) -> None:
        self.complain = complaints
        self.first = True
        self.finish: str | None = None
        self.calls: dict[int, _Call] = {}

    def feed(self, choice: Json) -> None:
        delta = choice["delta"]
        self.complain.unless(self.finish is None, FINISH, "a delta after the finish_reason")
        role = delta.get("role")
        self.complain.unless(
            role == ("assistant" if self.first else None), ROLE, f"role {role!r} does not belong here"
        )
        self.first = False
        for name in _TEXTS:
            self.complain.unless(
                isinstance(delta.get(name), str | None), TEXT, f"{name} is neither text nor null"
            )
        for fragment in entries(delta, "tool_calls"):
            self._add(fragment)
        self.finish = self.finish or choice["finish_reason"]

    def _add(self, fragment: Json) -> None:
        index = fragment["index"]
        if index in self.calls:
            self.calls[index].add(fragment)
            return
        self.complain.unless(index == len(self.calls), CALL_INDEX, f"tool index {index} out of turn")
        self.calls[index] = _Call(fragment, self.complain)

    def close(self) -> None:
        _check_finish(self.complain, self.finish, list(self.calls.values()))


class _Call:
    """A call, built from its fragments. In a whole body the call is one fragment."""

    def __init__(self, first: Json, complaints: Complaints) -> None:
        self.complain = complaints
        self.id: str = first["id"]
        self.kind: str = first["type"]
        inner = first[self.kind]
        self.name: str = inner["name"]
        self.key = "input" if self.kind == "custom" else "arguments"
        self.raw: Any = inner[self.key]
        complaints.unless(filled(self.id), CALL_HEAD, "a call without an id")
        complaints.unless(filled(self.name), CALL_HEAD, "a call without a name")
        complaints.unless(self.kind in ("function", "custom"), CALL_HEAD, f"unknown call type {self.kind}")
        complaints.unless(isinstance(self.raw, str), CALL_HEAD, f"{self.key} is not text")

    def add(self, fragment: Json) -> None:
        inner = fragment[self.kind]
        for name in ("id", "type"):
            self.complain.unless(fragment.get(name) is None, CALL_HEAD, f"{name} in a later fragment")
        self.complain.unless(inner.get("name") is None, CALL_HEAD, "name in a later fragment")
        self.raw += inner[self.key]


def _check_finish(complaints: Complaints, finish: str | None, calls: list[_Call]) -> None:
    complaints.unless(finish in _FINISH, FINISH, f"finish_reason is {finish!r}")
    ids = {call.id for call in calls}
    complaints.unless(len(ids) == len(calls), CALL_ID, "two calls have the same id")
    complaints.unless(finish != "tool_calls" or calls, FINISH, "finish_reason tool_calls without a call")
    complaints.unless(finish != "stop" or not calls, FINISH, "finish_reason stop beside a tool call")
    for call in calls:
        if call.kind == "function" and finish not in _CUT:
            finished_call(complaints, call.name, call.raw)


def _check_completion(complaints: Complaints, completion: Json) -> None:
    _check_ids(complaints, completion, "chat.completion")
    complaints.unless(completion["choices"], CHOICES, "no choice at all")
    for place, choice in enumerate(completion["choices"]):
        message = choice["message"]
        complaints.unless(choice["index"] == place, CHOICES, f"choice {choice['index']} out of turn")
        complaints.unless(message["role"] == "assistant", ROLE, "the role is not assistant")
        complaints.unless("content" in message, TEXT, "no content, not even null")
        calls = [_Call(entry, complaints) for entry in entries(message, "tool_calls")]
        _check_finish(complaints, choice["finish_reason"], calls)
    if completion.get("usage") is not None:
        check_usage(complaints, completion["usage"])


def _check_ids(complaints: Complaints, value: Json, kind: str) -> None:
    complaints.unless(value["object"] == kind, HEAD, f"object is not {kind}")
    complaints.unless(filled(value["id"]), HEAD, "no id")
    complaints.unless(filled(value["model"]), HEAD, "no model")
    complaints.unless(whole_number(value["created"]), HEAD, "created is not a time")


def check_usage(complaints: Complaints, usage: Json) -> None:
    total = usage["prompt_tokens"] + usage["completion_tokens"]
    complaints.unless(usage["total_tokens"] == total, USAGE, "total_tokens is not the sum")
