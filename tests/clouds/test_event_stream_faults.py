"""Faults inside AWS's event streams, told in the protocol of each client, before and after the first text."""

import json
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.eventstream import EventStreamBuffer
from support import aws
from support.plain_http import post
from support.serving import Serve
from support.stand_in import Answer, Sent, StandIn, standing_in

from dragoman.wire.event_stream import encode_event, encode_message

EVENTS = {
    "anthropic": [aws.chunk(event) for event in aws.CLAUDE],
    "bedrock-converse": [encode_event(kind, json.dumps(event).encode()) for kind, event in aws.CONVERSE],
}
BEGUN = {"anthropic": 3, "bedrock-converse": 6}
"""How many events bring the first text."""
SAID = [{"role": "user", "content": "hi"}]
CLIENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "anthropic": ("/v1/messages", {"max_tokens": 50, "stream": True, "messages": SAID}),
    "openai-chat": ("/v1/chat/completions", {"stream": True, "messages": SAID}),
    "openai-responses": ("/v1/responses", {"stream": True, "input": "hi"}),
    "gemini": (
        "/v1beta/models/MODEL:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    ),
    "bedrock": ("/model/MODEL/invoke-with-response-stream", {"max_tokens": 50, "messages": SAID}),
}


def changed(message: bytes, at: int) -> bytes:
    """The message with one bit changed on the way."""
    return message[:at] + bytes([message[at] ^ 1]) + message[at + 1 :]


METADATA = encode_event("metadata", b'{"a":1}')
FAULTS: dict[str, tuple[bytes, int, str]] = {
    # What comes, its status before the first text, and what the client reads.
    "throttling": (aws.exception("throttlingException", "Too many tokens"), 429, "Too many tokens"),
    "model stream": (aws.exception("modelStreamErrorException", "It broke."), 502, "It broke."),
    "model timeout": (aws.exception("modelTimeoutException", "Too slow."), 504, "Too slow."),
    "internal": (aws.exception("internalServerException", "Try again."), 500, "Try again."),
    "unavailable": (aws.exception("serviceUnavailableException", "Later."), 529, "Later."),
    "validation": (aws.exception("validationException", "Input is too long."), 400, "Input is too long."),
    "an error": (
        encode_message(
            {":message-type": "error", ":error-code": "InternalFailure", ":error-message": "gone"}, b""
        ),
        502,
        "gone",
    ),
    "checksum of the head": (changed(METADATA, 9), 502, "wrong checksum of its head"),
    "checksum of the content": (changed(METADATA, len(METADATA) - 6), 502, "wrong checksum of its content"),
    "a huge message": (struct.pack(">II", 1 << 30, 0) + b"\x00\x00\x00\x00", 502, "wrong checksum"),
    "garbage": (b"<html>Bad gateway</html>", 502, "wrong checksum"),
    "a cut message": (METADATA[:-3], 502, "ended in the middle"),
}


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAFIRST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", aws.KEYS["AKIAFIRST"])
    with standing_in(aws.bedrock) as place:
        yield place


def config(cloud: StandIn, protocol: str) -> str:
    upstream = (
        f'provider = "bedrock"\nprotocol = "{protocol}"\nregion = "us-east-1"\ncredential = "aws"\n'
        f'base_url = "{cloud.url}"\n'
    )
    return (
        f"[upstreams.one]\n{upstream}[upstreams.two]\n{upstream}"
        '[[routes]]\nmatch = "only"\nto = "one/bad"\n'
        '[[routes]]\nmatch = "both"\nto = ["one/bad", "two/good"]\n'
    )


def error_in(client: str, body: bytes) -> str:
    """What the last event of a stream says of an error; fails if the stream looks like a success."""
    if client == "bedrock":
        buffer = EventStreamBuffer()
        buffer.add_data(body)
        *_, last = buffer
        assert last.headers[":message-type"] == "exception"
        return json.loads(last.payload)["message"]
    frames = [line[6:] for line in body.decode().splitlines() if line.startswith("data: {")]
    last: Any = json.loads(frames[-1])
    if client == "openai-responses" and last["type"] == "response.failed":
        return last["response"]["error"]["message"]
    found = last.get("error", last)
    assert not any(
        done in body for done in (b"message_stop", b'"finishReason":"STOP"', b"response.completed")
    )
    return found["message"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("protocol", EVENTS)
def test_every_client_gets_the_error(cloud: StandIn, serve: Serve, protocol: str, fault: str) -> None:
    data, status, said = FAULTS[fault]
    events = 1

    def answer(sent: Sent) -> Answer:
        if "/good/" in sent.path:
            return aws.bedrock(sent)
        return Answer(b"".join(EVENTS[protocol][:events]) + data, aws.STREAM)

    cloud.answer = answer
    with serve(config(cloud, protocol)) as gateway:
        for client, (path, body) in CLIENTS.items():

            def ask(model: str, path: str = path, body: dict[str, Any] = body) -> Any:
                gateway.state.upstreams.health.failing.clear()
                named = body if "MODEL" in path else {**body, "model": model}
                return post(gateway.url + path.replace("MODEL", model), named)

            events = 1
            got = ask("only")
            assert (client, got.status) == (client, status)
            error = got.json.get("error", got.json)
            assert said in error["message"]
            got = ask("both")
            assert (client, got.status) == (client, status if status == 400 else 200)
            events = BEGUN[protocol]
            got = ask("both")
            assert (client, got.status) == (client, 200)
            assert said in error_in(client, got.body)
            assert sum("/good/" in sent.path for sent in cloud.sent) == (0 if status == 400 else 1)
            cloud.sent.clear()


@pytest.mark.parametrize("protocol", EVENTS)
def test_what_follows_a_complete_answer_does_not_matter(cloud: StandIn, serve: Serve, protocol: str) -> None:
    whole = b"".join(EVENTS[protocol])
    cloud.answer = lambda sent: Answer(whole + b"<html>Bad gateway</html>", aws.STREAM)
    path, body = CLIENTS["anthropic"]
    with serve(config(cloud, protocol)) as gateway:
        got = post(gateway.url + path, {**body, "model": "only"})
    assert got.status == 200
    assert b"message_stop" in got.body
    assert b'"error"' not in got.body
