"""The laws of Cursor's own JSON.

A stream has one object per event, each with one member. A call is announced once with its index
(`partial_tool_call`), then sent once and complete with the same tool and id (`tool_call_v2`). The
finish_reason, the usage if requested, and [DONE] follow. Or an error ends the stream. A whole answer is an
array of the same objects; an error body is the error object.
"""

from __future__ import annotations

from collections.abc import Callable

from ..shape import Json, UnreadableError, is_array, is_object, load
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
    text_of,
)
from .openai_chat import ERROR, NO_NAMES, USAGE, check_error, check_usage

ONE_THING = Law("one-thing", "each object has one member, and a known one")
WORDS = Law("words", "text and thinking are not empty")
ANNOUNCED = Law("announced", "each call is announced first, with its tool, id, name and index")
CALL_ID = Law("call-id", "no two calls have the same id, and no call is sent twice")
CALL_GIVEN = Law("call-given", "each announced call is sent, unless the answer was cut off")
CALL_FORM = Law("call-form", "a call has its tool, its id and the tool's parameters, without nulls")
FINISH = Law("finish-reason", "one known finish_reason that fits the content, and only the usage after it")
TERMINAL = Law("terminal-event", "[DONE] or an error ends the stream, with nothing after it")

_ANSWER = (
    *(ONE_THING, WORDS, ANNOUNCED, CALL_ID, CALL_GIVEN, CALL_FORM, CALL_JSON),
    *(FINISH, USAGE, TERMINAL, ERROR),
)
FAILED_ANSWER = b"["
LAWS_OF_STREAMS = (*STREAM, NO_NAMES, *_ANSWER)
LAWS_OF_BODIES = (UTF8, JSON, SHAPE, *_ANSWER)

_FINISH = {"stop", "length", "tool_calls", "content_filter"}
_CUT = {"length", "content_filter"}
_ANNOUNCED = {"tool", "tool_call_id", "name", "tool_index"}
_MCP = 19
# The member with the parameters of each tool, by the number of the tool in Cursor's client.
_PARAMS = {
    3: "ripgrep_search_params",
    5: "read_file_params",
    6: "list_dir_params",
    7: "edit_file_params",
    8: "file_search_params",
    11: "delete_file_params",
    15: "run_terminal_command_v2_params",
    16: "fetch_rules_params",
    18: "web_search_params",
    19: "mcp_params",
    23: "search_symbols_params",
    28: "create_diagram_params",
    30: "read_lints_params",
    34: "todo_read_params",
    35: "todo_write_params",
    38: "edit_file_v2_params",
    39: "list_dir_v2_params",
    40: "read_file_v2_params",
    41: "ripgrep_raw_search_params",
    42: "glob_file_search_params",
    44: "list_mcp_resources_params",
    45: "read_mcp_resource_params",
    48: "task_v2_params",
    49: "call_mcp_tool_params",
    51: "ask_question_params",
    52: "switch_mode_params",
}


def check_stream(body: bytes) -> Complaints:
    complaints = Complaints()
    answer = _Answer(complaints)
    done = False
    for number, event in enumerate(events(body, complaints)):
        complaints.at(f"event {number}", event.raw, event.offset)
        complaints.unless(event.name is None, NO_NAMES, f"has a name: {event.name}")
        complaints.unless(not done, TERMINAL, "comes after [DONE]")
        if event.data == DONE:
            done = True
            complaints.unless(not answer.failed, TERMINAL, "[DONE] after an error")
            continue
        value = json_object(event.data, complaints)
        if value is not None:
            answer.feed(value)
    complaints.at_end(body)
    complaints.unless(done or answer.failed, TERMINAL, "no [DONE]")
    answer.close()
    return complaints


def check_whole(body: bytes) -> Complaints:
    complaints = Complaints()
    text = text_of(body, complaints, separators=False)
    if text is None:
        return complaints
    complaints.at("", body, 0)
    complaints.seen.add(JSON)
    try:
        value = load(text)
    except UnreadableError as error:
        complaints.add(JSON, str(error))
        return complaints
    if is_object(value):
        with complaints.reading(SHAPE):
            check_error(complaints, value)
        return complaints
    if not is_array(value) or not all(map(is_object, value)):
        complaints.add(JSON, "neither an array of objects nor an error")
        return complaints
    answer = _Answer(complaints)
    for number, entry in enumerate(value):
        complaints.at(f"object {number}", body, 0)
        complaints.unless("error" not in entry, TERMINAL, "an error inside a whole answer")
        answer.feed(entry)
    complaints.at_end(body)
    answer.close()
    return complaints


class _Answer:
    def __init__(self, complaints: Complaints) -> None:
        self.complain = complaints
        self.announced: dict[str, Json] = {}
        self.given: set[str] = set()
        self.finish: str | None = None
        self.failed = False
        self.usage = False
        self._readers: dict[str, Callable[[Json], None]] = {
            "text": self._text,
            "thinking": self._thinking,
            "partial_tool_call": self._partial,
            "tool_call_v2": self._call,
            "finish_reason": self._finish,
            "usage": self._usage,
            "error": self._error,
        }

    def feed(self, entry: Json) -> None:
        self.complain.unless(not self.failed, TERMINAL, "comes after an error")
        self.complain.unless(not self.usage, FINISH, "comes after the usage")
        if len(entry) != 1 or not set(entry) <= set(self._readers):
            self.complain.add(ONE_THING, f"not one of {sorted(self._readers)}: {sorted(entry)}")
            return
        self.complain.seen.add(ONE_THING)
        (member,) = entry
        in_time = self.finish is None or member == "usage"
        self.complain.unless(in_time, FINISH, f"{member} after the finish_reason")
        with self.complain.reading(SHAPE):
            self._readers[member](entry)

    def close(self) -> None:
        if self.failed:
            return
        finish = self.finish
        self.complain.unless(finish in _FINISH, FINISH, f"finish_reason is {finish!r}")
        lacks_call = finish == "tool_calls" and not self.given
        self.complain.unless(not lacks_call, FINISH, "finish_reason tool_calls without a call")
        self.complain.unless(finish != "stop" or not self.given, FINISH, "finish_reason stop beside a call")
        if finish not in _CUT:
            missing = sorted(set(self.announced) - self.given)
            self.complain.unless(not missing, CALL_GIVEN, f"announced and never given: {missing}")

    def _text(self, entry: Json) -> None:
        self.complain.unless(filled(entry["text"]), WORDS, "text without words")

    def _thinking(self, entry: Json) -> None:
        thinking = entry["thinking"]
        good = set(thinking) == {"text"} and filled(thinking["text"])
        self.complain.unless(good, WORDS, "thinking without words, or with more")

    def _partial(self, entry: Json) -> None:
        call, complain = entry["partial_tool_call"], self.complain
        complain.unless(set(call) == _ANNOUNCED, ANNOUNCED, f"announced with {sorted(call)}")
        complain.unless(filled(call["name"]), ANNOUNCED, "announced without a name")
        complain.unless(filled(call["tool_call_id"]), ANNOUNCED, "announced without an id")
        complain.unless(call["tool"] in _PARAMS, ANNOUNCED, f"there is no tool {call['tool']}")
        complain.unless(call["tool_index"] == len(self.announced), ANNOUNCED, "tool_index out of turn")
        complain.unless(call["tool_call_id"] not in self.announced, CALL_ID, "two calls have the same id")
        self.announced[call["tool_call_id"]] = call

    def _call(self, entry: Json) -> None:
        call, complain = entry["tool_call_v2"], self.complain
        id, tool = call["tool_call_id"], call["tool"]
        announced = self.announced.get(id)
        complain.unless(announced, ANNOUNCED, f"{id} was never announced")
        complain.unless(id not in self.given, CALL_ID, f"{id} is given twice")
        self.given.add(id)
        if announced is None:
            return
        complain.unless(tool == announced["tool"], ANNOUNCED, "announced as another tool")
        form = {"tool", "tool_call_id", _PARAMS[tool]}
        complain.unless(set(call) == form, CALL_FORM, f"given with {sorted(call)}")
        params = call[_PARAMS[tool]]
        complain.unless(None not in params.values(), CALL_FORM, "an absent option is null")
        if tool == _MCP:
            (inside,) = params["tools"]
            complain.unless(inside["name"] == announced["name"], ANNOUNCED, "announced under another name")
            finished_call(complain, inside["name"], inside["parameters"])

    def _finish(self, entry: Json) -> None:
        self.finish = entry["finish_reason"]

    def _usage(self, entry: Json) -> None:
        self.usage = True
        self.complain.unless(self.finish, FINISH, "the usage before the finish_reason")
        check_usage(self.complain, entry["usage"])

    def _error(self, entry: Json) -> None:
        self.failed = True
        check_error(self.complain, entry)
