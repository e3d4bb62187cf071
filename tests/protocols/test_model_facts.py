"""Facts about models from their names and from refusals of upstreams."""

from typing import Any

import pytest

from dragoman.protocols.base import Target
from dragoman.protocols.model_facts import ModelFacts, facts_in_refusal, known_facts


@pytest.mark.parametrize(
    ("model", "facts"),
    [
        ("gpt-4.1", {"reasons": False, "search": False}),
        ("gpt-4.1-mini-2025-04-14", {"reasons": False}),
        ("gpt-4o", {"reasons": False, "search": False, "audio": False}),
        ("openai/gpt-4o-mini", {"reasons": False}),
        ("chatgpt-4o-latest", {"reasons": False}),
        ("gpt-3.5-turbo", {"reasons": False, "images": False}),
        ("gpt-5-chat-latest", {"reasons": False}),
        ("gpt-5", {"reasons": True, "search": False}),
        ("gpt-5.4-mini", {"reasons": True}),
        ("o3", {"reasons": True, "images": None}),
        ("o4-mini", {"reasons": True}),
        ("codex-mini-latest", {"reasons": True}),
        ("gpt-5-mini", {"sampling": False, "samples_unreasoned": False, "verbosity": None}),
        ("openai/gpt-5.2", {"sampling": False, "samples_unreasoned": True}),
        ("gpt-5-chat-latest", {"sampling": True}),
        ("gpt-4.1", {"sampling": None, "verbosity": False}),
        ("o3", {"sampling": False, "verbosity": False}),
        ("gpt-oss-120b", {"sampling": True, "verbosity": None}),
        ("gpt-4o-search-preview", {"search": True, "reasons": False}),
        ("gpt-4o-audio-preview", {"audio": True}),
        ("gpt-audio-mini", {"audio": True}),
        ("somebodys-deployment", {"reasons": None, "search": None, "images": None, "audio": None}),
        ("claude-3-opus-20240229", {"reasons": False, "schema_output": False}),
        ("anthropic/claude-3.5-sonnet", {"reasons": False}),
        ("claude-3-7-sonnet-20250219", {"reasons": True, "thinking_effort": False}),
        ("claude-sonnet-4-20250514", {"reasons": True, "thinking_effort": False, "one_sampling": False}),
        ("us.anthropic.claude-opus-4-6-v1:0", {"thinking_effort": None, "thinking_budget": None}),
        ("claude-opus-4-7", {"thinking_budget": False, "one_sampling": True}),
        ("claude-latest", {"thinking_effort": None, "thinking_budget": None, "signs_thinking": True}),
        ("google/gemini-2.5-pro", {"least_budget": 128, "most_budget": 32_768, "signs_calls": False}),
        ("gemini-2.5-flash", {"most_budget": 24_576, "media_results": False, "reasons": True}),
        ("gemini-2.0-flash", {"reasons": False, "media_results": False}),
        ("Gemini-3.1-pro", {"signs_calls": True, "least_effort": "low", "media_results": None}),
        ("gemini-flash-latest", {"signs_calls": True, "least_effort": "minimal", "longest_answer": None}),
        ("gemma-4", {"signs_calls": False, "reasons": None}),
    ],
)
def test_the_name_of_a_model_gives_its_facts(model: str, facts: dict[str, Any]) -> None:
    known = known_facts(model)
    assert {name: getattr(known, name) for name in facts} == facts


def test_facts_of_a_target_override_its_name() -> None:
    assert Target(model="gpt-4.1").takes.reasons is False
    assert Target(model="gpt-4.1", facts=ModelFacts(reasons=True)).takes.reasons is True


@pytest.mark.parametrize(
    ("refusal", "facts"),
    [
        ("Unsupported parameter: 'reasoning.effort' is not supported with this model.", {"reasons": False}),
        ("Unrecognized request argument supplied: reasoning_effort", {"reasons": False}),
        ("Encrypted content is not supported with this model.", {"reasons": False}),
        ("Thinking is not enabled for models/gemini-x", {"reasons": False}),
        ('"my-model" does not support thinking', {"reasons": False}),
        ("Unsupported parameter: 'temperature' is not supported with this model.", {"sampling": False}),
        (
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) "
            "value is supported.",
            {"sampling": False},
        ),
        ("Unsupported parameter: 'text.verbosity' is not supported with this model.", {"verbosity": False}),
        ("This model does not support image input", {"images": False}),
        ("unknown variant `image_url`, expected `text`", {"images": False}),
        ("Image inputs are not supported by this model.", {"images": False}),
        ("The image is too large", {}),
        ("temperature must be at most 2", {}),
        ("Web search options not supported: web_search_options", {"search": False}),
        ("messages: at least one message is required", {}),
        ("The model says it has its reasons", {}),
    ],
)
def test_a_refusal_gives_a_fact_about_its_model(refusal: str, facts: dict[str, Any]) -> None:
    assert facts_in_refusal(refusal) == facts
