"""JSON that is nested deeply is refused or passed on as it is, and never ends in a RecursionError."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from dragoman.cli import main
from dragoman.model.errors import BadRequest
from dragoman.model.messages import Tool
from dragoman.protocols.common import failures
from dragoman.protocols.registry import CLIENTS
from dragoman.translation.options import Options
from dragoman.translation.translation import Translation

DEPTHS = [90, 110, 250, 480, 980, 100_000]
RECURSIVE: dict[str, Any] = {
    "$ref": "#/$defs/n",
    "$defs": {
        "n": {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "additionalProperties": False}
    },
}


def deep(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def chat(args: str) -> bytes:
    """A Chat stream with one call that has these arguments."""
    call = f'{{"index":0,"id":"t","function":{{"name":"f","arguments":{args}}}}}'
    frames = [
        f'{{"id":"c","choices":[{{"index":0,"delta":{{"tool_calls":[{call}]}}}}]}}',
        '{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}',
        "[DONE]",
    ]
    return "".join(f"data: {frame}\n\n" for frame in frames).encode()


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("mode", ["live", "whole"])
@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_deep_arguments_are_refused_or_passed_on(client: str, mode: Any, depth: int) -> None:
    text = deep(depth)
    for args in (json.dumps(text), text):
        options = Options(id="x", model="m", mode=mode)
        exchange = Translation(
            "openai-chat", client, tools=[Tool(name="f", parameters=RECURSIVE)], options=options
        )
        data = chat(args)
        got = b"".join(exchange.feed(data[at : at + 4096]) for at in range(0, len(data), 4096))
        assert got + exchange.close()


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_deep_error_of_the_upstream_is_reported(depth: int) -> None:
    for body in (deep(depth), f'{{"error": {deep(depth)}}}', f'{{"error": {"[" * depth}{"]" * depth}}}'):
        assert failures.from_body(500, body.encode()).status == 500


@pytest.mark.parametrize("client", sorted(CLIENTS))
@pytest.mark.parametrize("text", ["[" * 100_000, deep(100_000)], ids=["open", "closed"])
def test_a_deep_request_is_refused(client: str, text: str) -> None:
    with pytest.raises(BadRequest):
        CLIENTS[client].read_request(text.encode(), "/v1beta/models/m:generateContent")


@pytest.mark.parametrize("text", ["[" * 100_000, "data: " + deep(100_000) + "\n\n"], ids=["body", "frame"])
def test_deep_input_of_translate_is_refused(text: str) -> None:
    ran = CliRunner().invoke(main, ["translate", "--from", "gemini", "--to", "anthropic"], input=text)
    assert ran.exception is None or isinstance(ran.exception, SystemExit)
    assert "event: error" in ran.output
