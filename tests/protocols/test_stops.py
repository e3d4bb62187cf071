"""Stop reasons of every provider and their neutral meaning."""

import pytest

from dragoman.model.events import FailureKind, Stop
from dragoman.protocols.common import stop_reasons


@pytest.mark.parametrize(
    ("reason", "meant"),
    [
        ("stop", Stop.END),
        ("STOP", Stop.END),
        ("eos", Stop.END),
        ("end_turn", Stop.END),
        ("tool_calls", Stop.TOOL),
        ("FUNCTION_CALL", Stop.TOOL),
        ("toolUse", Stop.TOOL),
        ("length", Stop.MAX_TOKENS),
        ("MAX_TOKENS", Stop.MAX_TOKENS),
        ("model_length", Stop.CONTEXT_FULL),
        ("model_context_window_exceeded", Stop.CONTEXT_FULL),
        ("SAFETY", Stop.FILTER),
        ("safety", Stop.FILTER),
        ("image-safety", Stop.FILTER),
        ("contentFilter", Stop.FILTER),
        ("content_filter: RECITATION", Stop.FILTER),
        ("sensitive", Stop.FILTER),
        ("refusal", Stop.REFUSAL),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", FailureKind.UPSTREAM),
        ("malformed_function_call", FailureKind.UPSTREAM),
        ("network_error", FailureKind.UPSTREAM),
        ("insufficient_system_resource", FailureKind.OVERLOADED),
        # Not in the table: recognized by parts of the word.
        ("output_policy_violation", Stop.FILTER),
        ("tool_call_error", FailureKind.UPSTREAM),
        ("outputTokensExhausted", Stop.MAX_TOKENS),
        ("because", None),
        ("", None),
    ],
)
def test_a_stop_reason_means_the_same_in_every_protocol(
    reason: str, meant: stop_reasons.Reason | None
) -> None:
    assert stop_reasons.meaning(reason) == meant


def test_no_stop_reason_is_in_the_table_twice() -> None:
    words = [word for listed in stop_reasons.WORDS.values() for word in listed.split()]
    assert len(words) == len(set(words))
