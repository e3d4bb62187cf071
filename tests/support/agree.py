"""Compares two answers in neutral form that come from different protocols.

For the matrix of clients and upstreams: `want` is the upstream's answer, `got` the client's. Parts that the
client's protocol does not support may be missing.
"""

from collections.abc import Iterator

from dragoman.conform.compare import same_value
from dragoman.conform.shape import Neutral, NeutralCall

from .wires import ANTHROPIC, CHAT, RESPONSES

_FREEFORM_CLIENTS = (CHAT, RESPONSES)


def differences(want: Neutral, got: Neutral, *, client: str) -> list[str]:
    return [
        *_texts(want, got),
        *_stop(want, got, client),
        *_calls(want, got, client),
        *_usage(want, got),
        *_error(want, got),
    ]


def _texts(want: Neutral, got: Neutral) -> Iterator[str]:
    # OpenAI separates refusals; elsewhere they are plain text.
    pairs = {
        "text": (want["text"] + want["refusal"], got["text"] + got["refusal"]),
        "thinking": (want["thinking"], got["thinking"]),
    }
    for name, (said, heard) in pairs.items():
        if said != heard:
            yield f"{name} {heard!r}, want {said!r}"


def _stop(want: Neutral, got: Neutral, client: str) -> Iterator[str]:
    accepted = {want["stop"]}
    if accepted & {"refusal", "content_filter"}:
        accepted = {"refusal"} if client == ANTHROPIC else {"refusal", "content_filter"}
    if want["stop"] == "stop_sequence" and client != ANTHROPIC:
        accepted = {"end_turn"}
    if got["stop"] not in accepted:
        yield f"stop {got['stop']}, want {sorted(map(str, accepted))}"


def _calls(want: Neutral, got: Neutral, client: str) -> Iterator[str]:
    cut = [call for call in want["tool_calls"] if _is_cut(call)]
    whole = [call for call in want["tool_calls"] if not _is_cut(call)]
    heard = got["tool_calls"]
    if len({call["id"] for call in heard}) != len(heard) or not all(call["id"] for call in heard):
        yield f"call ids {[call['id'] for call in heard]}"
    for call in cut:
        heard = [other for other in heard if not _is_prefix(other, call)]
    if len(heard) != len(whole):
        yield f"calls {[call['name'] for call in heard]}, want {[call['name'] for call in whole]}"
        return
    for call, other in zip(whole, heard, strict=True):
        if not _same_call(call, other, client):
            yield f"call {other}, want {call}"


def _is_cut(call: NeutralCall) -> bool:
    return call["kind"] == "function" and isinstance(call["arguments"], str)


def _is_prefix(got: NeutralCall, cut: NeutralCall) -> bool:
    """A cut call may be delivered up to the cut, but never as a complete one."""
    unfinished = isinstance(got["arguments"], str) or not got["raw"]
    return got["name"] == cut["name"] and unfinished and cut["raw"].startswith(got["raw"])


def _same_call(want: NeutralCall, got: NeutralCall, client: str) -> bool:
    if want["name"] != got["name"]:
        return False
    if want["kind"] == "custom" and client not in _FREEFORM_CLIENTS:
        # Without freeform tools the text is the only member of an object.
        return got["arguments"] == {"input": want["raw"]}
    return want["kind"] == got["kind"] and same_value(want["arguments"], got["arguments"])


def _usage(want: Neutral, got: Neutral) -> Iterator[str]:
    """The usage of a failed answer may differ."""
    if want["stop"] == "error":
        return
    for name in ("input", "output", "cached_input", "reasoning"):
        said, heard = want["usage"].get(name, 0), got["usage"].get(name, 0)
        if name in want["usage"] and said != heard:
            yield f"usage {name} {heard}, want {said}"


def _error(want: Neutral, got: Neutral) -> Iterator[str]:
    if want["error"] is None:
        if got["error"] is not None:
            yield f"error {got['error']}"
    elif got["error"] is None or want["error"]["message"] not in got["error"]["message"]:
        yield f"error {got['error']}, want {want['error']}"
