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


def changes(client: str, upstream: str) -> dict[str, FieldChange]:
    body = BODIES[client]
    reader, writer = PROTOCOLS[client], PROTOCOLS[upstream]
    out = writer.write_request(reader.read_request(json.dumps(body).encode(), PATH), Target(model="t"))
    found = field_changes(reader, writer, body, json.loads(out.encoded()), out.notices)
    assert len(found) == len({change.field for change in found})
    return {change.field: change for change in found}


def shown(client: str, upstream: str) -> dict[str, str]:
    return {
        name: f"{change.kind} {','.join(change.to)}".strip()
        for name, change in changes(client, upstream).items()
    }


def test_two_system_blocks_are_joined_and_not_lost() -> None:
    found = shown("anthropic", "openai-chat")
    assert found["system"] == "joined messages"
    assert found["max_tokens"] == "renamed max_completion_tokens"
    assert found["metadata"] == "renamed user"
    assert found["stream"] == "same stream,stream_options"
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
    parts = {"model", "messages", "system", "tools", "stream", *Settings.__struct_fields__}
    assert {part for held in PROTOCOLS[name].fields.values() for part in held} <= parts
