"""Compare an answer in neutral form with the expected result of a corpus case."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .laws.base import Breach, Law
from .reduce import reducer_of
from .shape import Json, is_array, is_object

TEXT = Law("said-text", "the visible text arrives complete, once, and without markup")
THINKING = Law("said-thinking", "reasoning arrives as reasoning")
STOP = Law("said-stop", "the stop reason is right; a broken answer ends in an error")
CALLS = Law("said-calls", "every call arrives once, in order, with its declared name and valid arguments")
CALL_IDS = Law("said-call-ids", "every call has a unique id")
CUT_CALLS = Law("said-cut-calls", "a call that was cut off never arrives as a finished call")
USAGE = Law("said-usage", "token counts are those of the upstream")
ERROR = Law("said-error", "the upstream's error message reaches the client")

LAWS = (TEXT, THINKING, STOP, CALLS, CALL_IDS, CUT_CALLS, USAGE, ERROR)


def compare(case: Json, got: Mapping[str, Any], *, client: str | None = None) -> list[Breach]:
    """The breaches in `got`. With `client`, stop reasons that this protocol lacks count as their fallback."""
    expect: Json = case["expect"]
    calls: list[Json] = list(got.get("tool_calls") or [])
    finished = [call for call in calls if not _is_cut(expect, call)]
    complaints: dict[Law, Iterable[str]] = {
        TEXT: _text(expect, got.get("text") or ""),
        THINKING: _thinking(expect, got.get("thinking") or ""),
        STOP: _stop(expect, got.get("stop"), client),
        CALL_IDS: _ids(calls),
        CUT_CALLS: _cut_calls(expect, calls),
        CALLS: _calls(expect, finished),
        USAGE: _usage(expect, got.get("usage") or {}),
        ERROR: _error(expect, got.get("error")),
    }
    return [Breach(law, text) for law, texts in complaints.items() for text in texts]


def laws_of(case: Json) -> set[Law]:
    """The laws that this case tests."""
    expect: Json = case["expect"]
    sometimes = {
        THINKING: "thinking" in expect,
        CALL_IDS: bool(expect["tool_calls"]),
        CUT_CALLS: bool(expect.get("incomplete_tool_calls")),
        USAGE: bool(expect.get("usage")),
        ERROR: bool(expect.get("error")),
    }
    return {law for law in LAWS if sometimes.get(law, True)}


def accepted_stops(expect: Json, client: str | None) -> list[str]:
    stops: list[str] = expect.get("stop_any") or [expect["stop"]]
    if client is None:
        return stops
    words = reducer_of(client).stop_fallbacks
    return [words.get(stop, stop) for stop in stops]


def same_value(a: Any, b: Any) -> bool:
    """Equality of JSON values: 5 and 5.0 are the same, True and 1 are not."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if is_object(a) and is_object(b):
        return a.keys() == b.keys() and all(same_value(a[key], b[key]) for key in a)
    if is_array(a) and is_array(b):
        return len(a) == len(b) and all(map(same_value, a, b))
    return a == b


def _text(expect: Json, text: str) -> Iterator[str]:
    want: str = expect["text"]
    if expect.get("text_contains_ok"):
        same = want in text
    elif expect.get("text_trim"):
        same = want.strip() == text.strip()
    else:
        same = want == text
    if not same:
        yield f"text {text[:80]!r}, want {want[:80]!r}"
    for unwanted in expect.get("text_not_contains", []):
        if unwanted in text:
            yield f"text contains {unwanted!r}"


def _thinking(expect: Json, thinking: str) -> Iterator[str]:
    if "thinking" in expect and thinking.strip() != expect["thinking"].strip():
        yield f"thinking {thinking[:80]!r}, want {expect['thinking'][:80]!r}"


def _stop(expect: Json, stop: str | None, client: str | None) -> Iterator[str]:
    stops = accepted_stops(expect, client)
    if stop not in stops:
        yield f"stop {stop}, want {' or '.join(stops)}"


def _ids(calls: list[Json]) -> Iterator[str]:
    ids = [call.get("id") for call in calls]
    if not all(ids):
        yield "empty tool call id"
    if len(set(ids)) != len(ids):
        yield "tool call ids not unique"


def _is_cut(expect: Json, call: Json) -> bool:
    """Does the case expect this call to be cut off? A complete call of the same name does not count."""
    whole = any(
        call["name"] == want["name"] and call["arguments"] == want["arguments"]
        for want in expect["tool_calls"]
    )
    return not whole and call["name"] in _policies(expect)


def _policies(expect: Json) -> dict[str, str]:
    return {cut["name"]: cut["policy"] for cut in expect.get("incomplete_tool_calls", [])}


def _cut_calls(expect: Json, calls: list[Json]) -> Iterator[str]:
    for call in calls:
        if not _is_cut(expect, call):
            continue
        name, arguments = call["name"], call["arguments"]
        if _policies(expect)[name] == "absent":
            yield f"incomplete call {name} must be absent"
        elif is_object(arguments) and (arguments or call.get("raw", "").strip() == "{}"):
            yield f"incomplete call {name} arrived as a complete call: {arguments}"


def _calls(expect: Json, calls: list[Json]) -> Iterator[str]:
    wanted: list[Json] = expect["tool_calls"]
    if len(calls) != len(wanted):
        yield f"{len(calls)} calls, want {len(wanted)}: {[call['name'] for call in calls]}"
        return
    if expect.get("order") == "any":
        calls, wanted = sorted(calls, key=_sort_key), sorted(wanted, key=_sort_key)
    for call, want in zip(calls, wanted, strict=True):
        if call["name"] != want["name"]:
            yield f"name {call['name']}, want {want['name']}"
        arguments = call["arguments"]
        if expect.get("args_extra_ok") and is_object(arguments):
            arguments = {key: arguments[key] for key in arguments if key in want["arguments"]}
        if not same_value(arguments, want["arguments"]):
            shown = f"{str(arguments)[:120]}, want {str(want['arguments'])[:120]}"
            yield f"{want['name']} arguments {shown}"


def _sort_key(call: Json) -> tuple[str, str]:
    return call["name"], json.dumps(call["arguments"], sort_keys=True)


def _usage(expect: Json, usage: Mapping[str, int]) -> Iterator[str]:
    """`input` and `output` are required. The parts of a count (cached, reasoning) may be missing."""
    for name, want in expect.get("usage", {}).items():
        count = usage.get(name)
        optional = name not in ("input", "output")
        if count != want and not (optional and count is None):
            yield f"usage {name} {count}, want {want}"


def _error(expect: Json, error: Any) -> Iterator[str]:
    want = expect.get("error", {}).get("message_contains")
    if want and want.lower() not in json.dumps(error or "", ensure_ascii=False).lower():
        yield f"error message lacks {want!r}"
