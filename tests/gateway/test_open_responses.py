"""A Responses client of a Chat upstream gets response objects that are complete by Open Responses.

The requests follow those of the specification's compliance suite.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.gateways import Gateway, Loop, gateway
from support.open_responses import missing
from support.plain_http import post

from dragoman.conform.scripted import serve

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PIXEL = f"data:image/png;base64,{PNG}"
WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def said(role: str, content: Any, **members: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content, **members}


REQUESTS: dict[str, dict[str, Any]] = {
    "words": {"input": [said("user", "Say hello in three words.")]},
    "string": {"input": "Say hello."},
    "system": {"input": [said("system", "Speak like a pirate."), said("user", "Say hello.")]},
    "turns": {"input": [said("user", "I am Alice."), said("assistant", "Hello."), said("user", "Who am I?")]},
    "phase": {
        "input": [
            said("user", "Look."),
            said("assistant", "Looking.", phase="commentary"),
            said("assistant", "Seen.", phase="final_answer"),
            said("user", "What?"),
        ]
    },
    "image": {
        "input": [
            said(
                "user",
                [{"type": "input_text", "text": "What is it?"}, {"type": "input_image", "image_url": PIXEL}],
            )
        ]
    },
    "file": {
        "input": [
            said(
                "user",
                [
                    {"type": "input_text", "text": "Its title?"},
                    {
                        "type": "input_file",
                        "filename": "a.pdf",
                        "file_data": "data:application/pdf;base64,JVBERg==",
                    },
                ],
            )
        ]
    },
    "tools": {"input": [said("user", "How is the weather in Rome?")], "tools": [WEATHER]},
    "bare tool": {"input": "Weather in Rome?", "tools": [{"type": "function", "name": "get_weather"}]},
    "settings": {
        "input": "Say hello.",
        "instructions": "Be brief.",
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 200,
        "reasoning": {"effort": "low"},
        "text": {"verbosity": "low"},
        "metadata": {"trace": "1"},
        "service_tier": "auto",
        "store": False,
        "parallel_tool_calls": False,
        "prompt_cache_key": "k",
        "safety_identifier": "s",
        "truncation": "auto",
    },
}


@pytest.fixture(scope="module")
def served() -> Iterator[Gateway]:
    loop = Loop()
    url, stop = loop.run(serve(pace=0))
    config = f'[upstreams.up]\nprotocol = "openai-chat"\nbase_url = "{url}"\ncredential = "none"\n'
    try:
        with gateway(config, loop) as running:
            yield running
    finally:
        loop.run(stop())
        loop.close()


def events(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]


def responses(served: Gateway, request: dict[str, Any], stream: bool) -> list[dict[str, Any]]:
    """Every response object of one answer. The last one is final."""
    got = post(f"{served.url}/v1/responses", {"model": "up/demo", **request, "stream": stream})
    assert got.status == 200
    if not stream:
        return [got.json]
    return [event["response"] for event in events(got.body) if "response" in event]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", REQUESTS)
def test_every_response_object_is_complete(name: str, stream: bool, served: Gateway) -> None:
    for response in responses(served, REQUESTS[name], stream):
        assert missing(response) == []
    assert response["status"] == "completed"
    assert response["completed_at"] >= response["created_at"]
    assert response["output"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_settings_are_repeated_unchanged(stream: bool, served: Gateway) -> None:
    request = REQUESTS["settings"]
    response = responses(served, request, stream)[-1]
    changed = {
        "service_tier": "default",  # the server chooses
        "reasoning": {"effort": "low", "summary": None},
        "text": {"verbosity": "low", "format": {"type": "text"}},
    }
    expected = {name: changed.get(name, value) for name, value in request.items() if name != "input"}
    assert {name: response[name] for name in expected} == expected


def test_tools_are_repeated_as_declared(served: Gateway) -> None:
    response = responses(served, REQUESTS["tools"], stream=False)[-1]
    assert response["tools"] == [{**WEATHER, "strict": None}]
    assert [item["type"] for item in response["output"]][-1] == "function_call"


def test_an_unfinished_response_has_no_completion_time(served: Gateway) -> None:
    created, *_, completed = responses(served, REQUESTS["words"], stream=True)
    assert (created["status"], created["completed_at"]) == ("in_progress", None)
    assert completed["completed_at"] is not None


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_tool_result_continues_a_response_by_its_id(stream: bool, served: Gateway) -> None:
    forced = REQUESTS["tools"] | {"tool_choice": {"type": "function", "name": "get_weather"}}
    first = responses(served, forced, stream)[-1]
    call = next(item for item in first["output"] if item["type"] == "function_call")
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "Sunny"}
    follow = {"input": [result], "tools": [WEATHER], "previous_response_id": first["id"]}
    for response in responses(served, follow, stream):
        assert missing(response) == []
        assert response["previous_response_id"] == first["id"]
    assert response["status"] == "completed"
    assert [item["type"] for item in response["output"]] == ["message"]


def test_the_events_of_a_call(served: Gateway) -> None:
    got = post(f"{served.url}/v1/responses", {"model": "up/demo", **REQUESTS["tools"], "stream": True})
    of_call = [
        event["type"]
        for event in events(got.body)
        if "arguments" in event["type"] or event.get("item", {}).get("type") == "function_call"
    ]
    assert of_call[0] == "response.output_item.added"
    assert set(of_call[1:-2]) == {"response.function_call_arguments.delta"}
    assert of_call[-2:] == ["response.function_call_arguments.done", "response.output_item.done"]
