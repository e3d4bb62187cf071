"""The laws of OpenAI Chat Completions.

Stream: chunks with the same id, object, created and model; role in the first delta; per choice one
finish_reason and no delta after it; then the usage chunk, if any; then [DONE]. Or a chunk with an
error at any point before the finish_reason, after which only [DONE] may come.
"""

from typing import Any

from .laws_framing import (
    DONE,
    Complaints,
    events,
    filled,
    finished_call,
    json_object,
    whole_number,
    whole_object,
)
from .shape import Json

_FINISH = {"stop", "length", "tool_calls", "content_filter", "function_call"}
_CUT = {"length", "content_filter"}
_CONSTANT = ("id", "object", "created", "model")
_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")


def check_stream(body: bytes) -> list[str]:
    complaints = Complaints()
    stream = _Stream(complaints)
    for number, event in enumerate(events(body, complaints)):
        complaints.place = f"event {number}"
        complaints.unless(event.name is None, f"has a name: {event.name}")
        complaints.unless(not stream.done, "comes after [DONE]")
        if event.data == DONE:
            stream.done = True
            continue
        value = json_object(event.data, complaints)
        if value is None:
            continue
        with complaints.reading():
            stream.feed(value)
    complaints.place = "end"
    with complaints.reading():
        stream.close()
    return complaints.found


def check_whole(body: bytes) -> list[str]:
    complaints = Complaints()
    value = whole_object(body, complaints)
    if value is None:
        return complaints.found
    with complaints.reading():
        if value.get("error"):
            check_error(complaints, value)
        else:
            _check_completion(complaints, value)
    return complaints.found


def check_error(complaints: Complaints, value: Json) -> None:
    error = value["error"]
    complaints.unless(filled(error["message"]), "the error has no message")
    complaints.unless(filled(error["type"]), "the error has no type")


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
        complain.unless(not self.failed, "comes after an error")
        complain.unless(not self.usage_seen, "comes after the usage")
        if chunk.get("error"):
            self.failed = True
            finished = any(choice.finish for choice in self.choices.values())
            complain.unless(not finished, "an error after the finish_reason")
            check_error(complain, chunk)
            return
        self._check_head(chunk)
        for choice in chunk["choices"]:
            self._choice(choice["index"]).feed(choice)
        if chunk.get("usage") is not None:
            self.usage_seen = True
            _check_usage(complain, chunk["usage"])

    def close(self) -> None:
        if self.failed:
            return
        self.complain.unless(self.done, "no [DONE]")
        self.complain.unless(self.choices, "no choice at all")
        for choice in self.choices.values():
            choice.close()

    def _choice(self, index: int) -> "_Choice":
        if index not in self.choices:
            self.complain.unless(index == len(self.choices), f"choice {index} out of turn")
            self.choices[index] = _Choice(self.complain)
        return self.choices[index]

    def _check_head(self, chunk: Json) -> None:
        head = [chunk[name] for name in _CONSTANT]
        if self.head is None:
            self.head = head
            _check_ids(self.complain, chunk, "chat.completion.chunk")
        for name, old, new in zip(_CONSTANT, self.head, head, strict=True):
            self.complain.unless(old == new, f"{name} changed from {old!r} to {new!r}")


class _Choice:
    def __init__(self, complaints: Complaints) -> None:
        self.complain = complaints
        self.first = True
        self.finish: str | None = None
        self.calls: dict[int, _Call] = {}

    def feed(self, choice: Json) -> None:
        delta = choice["delta"]
        self.complain.unless(self.finish is None, "a delta after the finish_reason")
        role = delta.get("role")
        self.complain.unless(
            role == ("assistant" if self.first else None), f"role {role!r} does not belong here"
        )
        self.first = False
        for name in _TEXTS:
            self.complain.unless(isinstance(delta.get(name), str | None), f"{name} is neither text nor null")
        for fragment in delta.get("tool_calls") or []:
            self._add(fragment)
        self.finish = self.finish or choice["finish_reason"]

    def _add(self, fragment: Json) -> None:
        index = fragment["index"]
        if index in self.calls:
            self.calls[index].add(fragment)
            return
        self.complain.unless(index == len(self.calls), f"tool index {index} out of turn")
        self.calls[index] = _Call(fragment, self.complain)

    def close(self) -> None:
        _check_finish(self.complain, self.finish, list(self.calls.values()))


class _Call:
    """A call from its first fragment on; the whole call of a whole body is one fragment."""

    def __init__(self, first: Json, complaints: Complaints) -> None:
        self.complain = complaints
        self.id: str = first["id"]
        self.kind: str = first["type"]
        inner = first[self.kind]
        self.name: str = inner["name"]
        self.key = "input" if self.kind == "custom" else "arguments"
        self.raw: str = inner[self.key]
        complaints.unless(filled(self.id), "a call without an id")
        complaints.unless(filled(self.name), "a call without a name")
        complaints.unless(self.kind in ("function", "custom"), f"unknown call type {self.kind}")
        complaints.unless(isinstance(self.raw, str), f"{self.key} is not text")

    def add(self, fragment: Json) -> None:
        inner = fragment[self.kind]
        for name in ("id", "type"):
            self.complain.unless(fragment.get(name) is None, f"{name} in a later fragment")
        self.complain.unless(inner.get("name") is None, "name in a later fragment")
        self.raw += inner[self.key]


def _check_finish(complaints: Complaints, finish: str | None, calls: list[_Call]) -> None:
    complaints.unless(finish in _FINISH, f"finish_reason is {finish!r}")
    ids = {call.id for call in calls}
    complaints.unless(len(ids) == len(calls), "two calls have the same id")
    complaints.unless(finish != "tool_calls" or calls, "finish_reason tool_calls without a call")
    complaints.unless(finish != "stop" or not calls, "finish_reason stop beside a tool call")
    for call in calls:
        if call.kind == "function" and finish not in _CUT:
            finished_call(complaints, call.name, call.raw)


def _check_completion(complaints: Complaints, completion: Json) -> None:
    _check_ids(complaints, completion, "chat.completion")
    complaints.unless(completion["choices"], "no choice at all")
    for place, choice in enumerate(completion["choices"]):
        message = choice["message"]
        complaints.unless(choice["index"] == place, f"choice {choice['index']} out of turn")
        complaints.unless(message["role"] == "assistant", "the role is not assistant")
        complaints.unless("content" in message, "no content, not even null")
        calls = [_Call(entry, complaints) for entry in message.get("tool_calls") or []]
        _check_finish(complaints, choice["finish_reason"], calls)
    if completion.get("usage") is not None:
        _check_usage(complaints, completion["usage"])


def _check_ids(complaints: Complaints, value: Json, kind: str) -> None:
    complaints.unless(value["object"] == kind, f"object is not {kind}")
    complaints.unless(filled(value["id"]), "no id")
    complaints.unless(filled(value["model"]), "no model")
    complaints.unless(whole_number(value["created"]), "created is not a time")


def _check_usage(complaints: Complaints, usage: Json) -> None:
    total = usage["prompt_tokens"] + usage["completion_tokens"]
    complaints.unless(usage["total_tokens"] == total, "total_tokens is not the sum")
