"""The change of each field of a request, for every pair of protocols: from data, never from a guess."""

import json
from typing import Any

import pytest

from dragoman.model.messages import Settings
from dragoman.protocols.anthropic.request.read import KNOWN
from dragoman.protocols.base import Target
from dragoman.protocols.openai_chat.request.read_settings import READ as CHAT_READ
from dragoman.protocols.openai_responses.request.read import NEUTRAL
from dragoman.protocols.registry import PROTOCOLS
from dragoman.translation.field_changes import FieldChange, field_changes

TEXT = "be brief"
BODIES: dict[str, dict[str, Any]] = {
    "anthropic": {
        "model": "m",
        "max_tokens": 50,
        "system": [{"type": "text", "text": TEXT}, {"type": "text", "text": "and kind"}],
        "messages": [{"role": "user", "content": "x"}],
        "stop_sequences": ["END"],
        "metadata": {"user_id": "u"},
        "top_k": 3,
        "stream": True,
        "context_management": {"edits": []},
    },
    "openai-chat": {
        "model": "m",
        "messages": [{"role": "system", "content": TEXT}, {"role": "user", "content": "x"}],
        "max_completion_tokens": 50,
        "seed": 7,
        "made_up": 1,
    },
    "openai-responses": {
        "model": "m",
        "instructions": TEXT,
        "input": "x",
        "max_output_tokens": 50,
        "text": {"verbosity": "low"},
    },
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": "x"}]}],
        "system_instruction": {"parts": [{"text": TEXT}]},
        "generation_config": {"max_output_tokens": 50, "topK": 3},
    },
}
PATH = "/v1beta/models/m:generateContent"


def changes(client: str, upstream: str, **more: Any) -> dict[str, FieldChange]:
    body = BODIES[client] | more
    reader, writer = PROTOCOLS[client], PROTOCOLS[upstream]
    out = writer.write_request(reader.read_request(json.dumps(body).encode(), PATH), Target(model="t"))
    found = field_changes(reader, writer, body, json.loads(out.encoded()), out.notices, PATH)
    assert len(found) == len({change.field for change in found})
    return {change.field: change for change in found}


def shown(client: str, upstream: str, **more: Any) -> dict[str, str]:
    return {
        name: f"{change.kind} {','.join(change.to)}".strip()
        for name, change in changes(client, upstream, **more).items()
    }


def test_two_system_blocks_are_joined_and_not_lost() -> None:
    found = shown("anthropic", "openai-chat")
    assert found["system"] == "joined messages"
    assert found["max_tokens"] == "renamed max_completion_tokens"
    assert found["metadata"] == "renamed user"
    assert found["stream"] == "same stream"
    assert found["context_management"] == "dropped"
    assert changes("anthropic", "openai-chat")["top_k"].notices[0].message == "this upstream has no top_k"


def test_emulated_field_is_marked() -> None:
    change = changes("anthropic", "openai-responses")["stop_sequences"]
    assert (change.kind, change.to) == ("emulated", ())
    assert change.notices


def test_model_and_stream_are_in_the_url_of_gemini() -> None:
    found = shown("anthropic", "gemini")
    assert (found["model"], found["stream"]) == ("renamed (URL)", "renamed (URL)")
    assert found["top_k"] == "renamed generationConfig.topK"


def test_gemini_spellings_are_one_field() -> None:
    assert shown("gemini", "gemini")["generation_config.max_output_tokens"].startswith("same")
    assert shown("gemini", "anthropic") == {
        "contents": "renamed messages",
        "system_instruction": "renamed system",
        "generation_config.max_output_tokens": "renamed max_tokens",
        "generation_config.topK": "renamed top_k",
    }


def test_an_overruled_field_is_not_reported_as_sent() -> None:
    found = shown("openai-chat", "anthropic", max_tokens=7, user="u", safety_identifier="s")
    assert (found["max_completion_tokens"], found["max_tokens"]) == ("renamed max_tokens", "overruled")
    assert (found["user"], found["safety_identifier"]) == ("renamed metadata", "overruled")
    found = shown("anthropic", "openai-responses", speed="fast", service_tier="auto")
    assert (found["speed"], found["service_tier"]) == ("renamed service_tier", "overruled")


def test_a_field_is_not_reported_in_a_field_that_holds_only_other_parts() -> None:
    found = shown("openai-chat", "anthropic", user="u", metadata={"a": "b"})
    assert (found["user"], found["metadata"]) == ("renamed metadata", "dropped")
    found = shown("openai-responses", "anthropic", reasoning={"effort": "low"}, text={"verbosity": "low"})
    assert found["text"] == "dropped"


NOT_NEEDED: list[tuple[str, str, dict[str, Any]]] = [
    ("anthropic", "openai-chat", {"stream": False}),
    ("anthropic", "openai-chat", {"stop_sequences": []}),
    ("anthropic", "gemini", {"system": []}),
    ("openai-chat", "anthropic", {"parallel_tool_calls": True}),
    ("openai-chat", "anthropic", {"n": 1}),
    ("openai-chat", "gemini", {"response_format": {"type": "text"}}),
    ("openai-chat", "gemini", {"service_tier": "auto"}),
    ("openai-responses", "gemini", {"background": False}),
]


@pytest.mark.parametrize(("client", "upstream", "field"), NOT_NEEDED)
def test_a_field_that_asks_for_nothing_is_not_reported_as_lost(
    client: str, upstream: str, field: dict[str, Any]
) -> None:
    (name,) = field
    assert shown(client, upstream, **field)[name] == "default"


def test_usage_in_a_stream_is_the_work_of_dragoman() -> None:
    asked = {"stream": True, "stream_options": {"include_usage": True}}
    assert shown("openai-chat", "gemini", **asked)["stream_options"] == "emulated"
    assert shown("openai-chat", "openai-chat", **asked)["stream_options"] == "same stream_options"


def test_the_notice_about_a_member_without_meaning_is_at_its_field() -> None:
    (notice,) = changes("anthropic", "gemini", container="c")["container"].notices
    assert notice.rule == "opaque-dropped"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_equal_protocols_keep_every_field(name: str) -> None:
    changed = {field for field, change in changes(name, name).items() if change.kind != "same"}
    assert changed <= {"model"}


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_conversation_and_prompt_always_arrive(client: str, upstream: str) -> None:
    table = PROTOCOLS[client].fields
    needed = {"messages", "system", "max_tokens"}
    found = changes(client, upstream).items()
    assert [
        field for field, change in found if needed & {*table.get(field, ())} and change.kind == "dropped"
    ] == []


def test_tables_name_every_field_that_a_reader_reads() -> None:
    assert PROTOCOLS["anthropic"].fields.keys() >= KNOWN
    assert PROTOCOLS["openai-responses"].fields.keys() >= NEUTRAL
    assert PROTOCOLS["openai-chat"].fields.keys() >= CHAT_READ


@pytest.mark.parametrize("name", PROTOCOLS)
def test_tables_name_only_parts_of_the_neutral_request(name: str) -> None:
    parts = {"model", "messages", "system", "tools", "stream", "include_usage", *Settings.__struct_fields__}
    assert {part for held in PROTOCOLS[name].fields.values() for part in held} <= parts
