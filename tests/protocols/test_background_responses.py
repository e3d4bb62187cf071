"""A response that runs in the background: its first body has no answer yet."""

import json
from typing import Any

import pytest
from support.exchanges import exchange, run
from support.wires import RESPONSES

from dragoman.conform import laws, neutral
from dragoman.protocols.registry import PROTOCOLS


def body(status: str, output: list[Any]) -> bytes:
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "background": True}
    return json.dumps(response | {"status": status, "output": output, "usage": None}).encode()


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_a_responses_client_gets_it_as_it_is(status: str) -> None:
    it = exchange(RESPONSES, RESPONSES, stream=False)
    assert json.loads(run(it, [body(status, [])])) == json.loads(body(status, []))
    assert it.failure is None
    assert laws.check(RESPONSES, body(status, []), stream=False) == []
    waiting = body(status, []).replace(b'"background": true', b'"background": false')
    assert laws.check(RESPONSES, waiting, stream=False) != []


@pytest.mark.parametrize("client", sorted(set(PROTOCOLS) - {RESPONSES}))
@pytest.mark.parametrize("stream", [True, False])
def test_other_clients_get_an_error_instead_of_an_empty_answer(client: str, stream: bool) -> None:
    it = exchange(RESPONSES, client, stream=stream)
    run(it, [body("queued", [])])
    assert it.failure is not None
    assert it.failure.message == "the upstream has no answer yet: its response is queued"


def test_a_body_with_content_is_an_answer_whatever_its_status() -> None:
    part = {"type": "output_text", "text": "hi", "annotations": []}
    message = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    said = neutral.reduce(
        "anthropic",
        run(exchange(RESPONSES, "anthropic", stream=False), [body("in_progress", [message])]),
        stream=False,
    )
    assert (said["text"], said["stop"]) == ("hi", "end_turn")
