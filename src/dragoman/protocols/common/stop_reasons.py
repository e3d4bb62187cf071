"""The stop reasons of all upstreams, in one table for all protocols.

Gateways and compatible servers pass on the stop reason of the model's own provider: `SAFETY` in a Chat
answer, `length` in an Anthropic answer. So a table per protocol would miss them. Case and separators do not
matter.
"""

from __future__ import annotations

import re

from ...model.events import Failed, FailureKind, Stop
from .failures import STATUS

Reason = Stop | FailureKind
"""Why an answer ended, or what kind of failure it ended in."""

WORDS: dict[Reason, str] = {
    Stop.END: "stop end_turn eos eos_token end_of_turn end_of_text"
    " end complete completed finish finished done",
    Stop.TOOL: "tool_calls tool_call tool_use tool_uses function_call function_calls tools",
    # OpenAI, Anthropic and Gemini; Cohere; Open WebUI; limits of agent servers.
    Stop.MAX_TOKENS: "length max_tokens max_output_tokens max_completion_tokens max_new_tokens max_length"
    " max_tokens_reached token_limit output_limit max_messages",
    # Mistral, Anthropic, Cohere.
    Stop.CONTEXT_FULL: "model_length model_context_window_exceeded context_window_exceeded"
    " context_length_exceeded context_length error_limit",
    Stop.STOP_SEQUENCE: "stop_sequence stop_sequences stop_string",
    Stop.PAUSE: "pause_turn pause compaction continuation steered",
    Stop.REFUSAL: "refusal refused model_refusal",
    # OpenAI and Azure; Gemini; Zhipu; Bedrock; Cohere; the moderation of Moonshot, MiniMax and others.
    Stop.FILTER: "content_filter content_filtered content_filtering content_policy content_policy_violation"
    " safety recitation prohibited_content blocklist spii language image_safety image_prohibited_content"
    " image_recitation image_other model_armor no_image"
    " sensitive guardrail_intervened guardrail error_toxic moderation moderated blocked flagged"
    " input_sensitive output_sensitive risk unsafe",
    # The model wrote an invalid tool call (Gemini), or the server lost the answer.
    FailureKind.UPSTREAM: "error malformed_function_call malformed_tool_call malformed_tool_use"
    " unexpected_tool_call too_many_tool_calls malformed_response malformed_model_output"
    " missing_thought_signature network_error abort aborted cancel cancelled canceled interrupted failed"
    " failure server_error internal_error internal_server_error engine_error",
    # DeepSeek.
    FailureKind.OVERLOADED: "insufficient_system_resource overloaded engine_overloaded load_shedding",
    FailureKind.TIMEOUT: "timeout timed_out time_limit",
}
_FILTERING = """
    filter filtered safety unsafe policy blocked block blocklist sensitive moderation prohibited guardrail
    recitation violation
"""
# The meaning of an unknown stop reason, by the words in it. The first match counts.
_BY_PARTIAL_WORD: tuple[tuple[frozenset[str], Reason], ...] = (
    (frozenset({"malformed", "error", "failed", "failure", "abort", "aborted"}), FailureKind.UPSTREAM),
    (frozenset({"overloaded", "resource"}), FailureKind.OVERLOADED),
    (frozenset({"timeout"}), FailureKind.TIMEOUT),
    (frozenset(_FILTERING.split()), Stop.FILTER),
    (frozenset({"context"}), Stop.CONTEXT_FULL),
    (frozenset({"tokens", "length"}), Stop.MAX_TOKENS),
)
_SEPARATORS = re.compile(r"[^a-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _plain(reason: str) -> str:
    return _SEPARATORS.sub("", reason.lower())


_BY_WORD = {_plain(word): meant for meant, words in WORDS.items() for word in words.split()}


def known(reason: str) -> Reason | None:
    """The meaning of a stop reason; None if it is not in the table.

    Google's Chat endpoint sends two reasons in one, `content_filter: PROHIBITED_CONTENT`: the last one
    counts.
    """
    found = _BY_WORD.get(_plain(reason))
    if found is None and ":" in reason:
        found = _BY_WORD.get(_plain(reason.rpartition(":")[2])) or _BY_WORD.get(
            _plain(reason.partition(":")[0])
        )
    return found


def meaning(reason: str) -> Reason | None:
    """The meaning of a stop reason. An unknown reason is judged by its words; None if they do not help."""
    found = known(reason)
    if found is None:
        words = frozenset(_SEPARATORS.split(_CAMEL.sub("_", reason).lower()))
        found = next((meant for about, meant in _BY_PARTIAL_WORD if not words.isdisjoint(about)), None)
    return found


def failure(kind: FailureKind, reason: str, message: str | None = None) -> Failed:
    """The failure for an answer that the upstream ended with this reason."""
    message = message or f"the upstream ended the answer with {reason!r}"
    return Failed(kind, message, STATUS[kind], reason)
