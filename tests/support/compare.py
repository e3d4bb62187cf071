"""Compare an answer in neutral form with what a case of the corpus expects."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from .shape import ANTHROPIC, Json

# A protocol without a word for a stop says another one instead.
_ANTHROPIC_STOPS = {"content_filter": "refusal"}
_OTHER_STOPS = {"stop_sequence": "end_turn"}


def compare(case: Json, got: Mapping[str, Any], *, client: str | None = None) -> list[str]:
    """What is wrong with `got`; with `client`, in the stop words that protocol has."""
    expect: Json = case["expect"]
    calls: list[Json] = list(got.get("tool_calls") or [])
    return [
        *_text(expect, got.get("text") or ""),
        *_thinking(expect, got.get("thinking") or ""),
        *_stop(expect, got.get("stop"), client),
        *_ids(calls),
        *_cut_calls(expect, calls),
        *_calls(expect, [call for call in calls if not _is_cut(expect, call)]),
        *_usage(expect, got.get("usage") or {}),
        *_error(expect, got.get("error")),
    ]


def accepted_stops(expect: Json, client: str | None) -> list[str]:
    stops: list[str] = expect.get("stop_any") or [expect["stop"]]
    if client is None:
        return stops
    words = _ANTHROPIC_STOPS if client == ANTHROPIC else _OTHER_STOPS
    return [words.get(stop, stop) for stop in stops]


def same_value(a: Any, b: Any) -> bool:
    """Equality of JSON values: 5 and 5.0 are the same, True and 1 are not."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_value(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
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
    """Whether the case says that this call was cut off: a whole one of that name is not meant."""
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
        elif isinstance(arguments, dict) and (arguments or call.get("raw", "").strip() == "{}"):
            yield f"incomplete call {name} was given out as complete: {arguments}"


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
        if expect.get("args_extra_ok") and isinstance(arguments, dict):
            arguments = {key: arguments[key] for key in arguments if key in want["arguments"]}
        if not same_value(arguments, want["arguments"]):
            shown = f"{str(arguments)[:120]}, want {str(want['arguments'])[:120]}"
            yield f"{want['name']} arguments {shown}"


def _sort_key(call: Json) -> tuple[str, str]:
    return call["name"], json.dumps(call["arguments"], sort_keys=True)


def _usage(expect: Json, usage: Mapping[str, int]) -> Iterator[str]:
    """The parts of a count may be left unsaid, the counts themselves may not."""
    for name, want in expect.get("usage", {}).items():
        said = usage.get(name)
        optional = name not in ("input", "output")
        if said != want and not (optional and said is None):
            yield f"usage {name} {said}, want {want}"


def _error(expect: Json, error: Any) -> Iterator[str]:
    want = expect.get("error", {}).get("message_contains")
    if want and want.lower() not in json.dumps(error or "", ensure_ascii=False).lower():
        yield f"error message lacks {want!r}"
