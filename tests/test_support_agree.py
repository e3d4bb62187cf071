"""`support.agree` reports every difference that the client's protocol can express."""

import copy
from typing import Any

import pytest
from support.agree import differences
from support.sample_streams import SAMPLES
from support.wires import ANTHROPIC, CHAT, GEMINI

from dragoman.conform.shape import Neutral


def changed(kind: str, **change: Any) -> tuple[Neutral, Neutral]:
    want = SAMPLES[CHAT][kind].expect
    got: Any = {**copy.deepcopy(want), **change}
    return want, got


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("text", {"text": "x"}),
        ("thinking_tool", {"thinking": ""}),
        ("text", {"stop": "tool_use"}),
        ("text", {"stop": None}),
        ("tool", {"tool_calls": []}),
        ("usage", {"usage": {"input": 1}}),
        ("usage", {"usage": {}}),
        ("text", {"error": {"message": "x"}}),
        ("error", {"error": None}),
        ("error", {"error": {"message": "x"}}),
    ],
)
def test_a_difference_is_reported(kind: str, change: dict[str, Any]) -> None:
    assert differences(*changed(kind, **change), client=CHAT)


def with_call(name: str, change: dict[str, Any]) -> tuple[Neutral, Neutral]:
    want, got = changed(name)
    got["tool_calls"][-1] |= change  # type: ignore[typeddict-item]
    return want, got


@pytest.mark.parametrize("change", [{"name": "x"}, {"arguments": {}}, {"id": ""}, {"kind": "custom"}])
def test_a_changed_call_is_reported(change: dict[str, Any]) -> None:
    assert differences(*with_call("tool", change), client=CHAT)


def test_two_calls_need_two_ids() -> None:
    want, got = changed("parallel")
    got["tool_calls"][1]["id"] = got["tool_calls"][0]["id"]
    assert differences(want, got, client=CHAT)


def test_a_cut_call_is_a_prefix_or_nothing() -> None:
    assert differences(*with_call("max_tokens_tool", {"arguments": "{", "raw": "{"}), client=CHAT) == []
    want, got = changed("max_tokens_tool")
    del got["tool_calls"][-1]
    assert differences(want, got, client=CHAT) == []
    for arguments, raw in (({}, "{}"), ("other", "other")):
        pair = with_call("max_tokens_tool", {"arguments": arguments, "raw": raw})
        assert differences(*pair, client=CHAT)


def test_a_freeform_call_is_wrapped_for_clients_without_freeform_tools() -> None:
    raw = SAMPLES[CHAT]["custom_tool"].expect["tool_calls"][0]["raw"]
    wrapped = with_call("custom_tool", {"kind": "function", "arguments": {"input": raw}})
    assert differences(*wrapped, client=ANTHROPIC) == []
    assert differences(*wrapped, client=CHAT)
    assert differences(*changed("custom_tool"), client=GEMINI)


def test_stop_reasons_are_compared_in_the_clients_terms() -> None:
    assert differences(*changed("filter", stop="refusal"), client=ANTHROPIC) == []
    assert differences(*changed("filter"), client=ANTHROPIC)
    assert differences(*changed("filter"), client=GEMINI) == []
    want = SAMPLES[ANTHROPIC]["stop_sequence"].expect
    assert differences(want, want, client=ANTHROPIC) == []
    assert differences(want, want, client=CHAT)
