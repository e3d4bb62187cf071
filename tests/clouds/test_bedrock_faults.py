"""What goes wrong at Bedrock: inside its event streams, and with credentials in the middle of a session."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, APIError, APIStatusError
from support import aws
from support.serving import Serve
from support.stand_in import Answer, Sent, StandIn, standing_in

from dragoman.wire.event_stream import encode_event

ASKED: dict[str, Any] = {
    "max_tokens": 500,
    "model": "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0",
    "messages": [{"role": "user", "content": "Read a.py"}],
}
MESSAGES = {
    "anthropic": [aws.chunk(event) for event in aws.CLAUDE],
    "bedrock-converse": [encode_event(kind, json.dumps(event).encode()) for kind, event in aws.CONVERSE],
}
"""The messages of an event stream, by the protocol of the upstream. Some content is in the first three."""
THROTTLED = aws.exception("throttlingException", "Too many tokens, please wait before trying again.")
BROKEN = aws.exception("modelStreamErrorException", "The model broke.")


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAFIRST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", aws.KEYS["AKIAFIRST"])
    with standing_in(aws.bedrock) as place:
        yield place


def config(cloud: StandIn, protocol: str) -> str:
    place = f'region = "us-east-1"\nbase_url = "{cloud.url}"\ncredential = "aws"\n'
    return f'[upstreams.bedrock]\n{place}protocol = "{protocol}"\n'


def ask(url: str) -> Any:
    """The message, or the error that the SDK raises; and the text that came before it."""
    text = ""
    client = Anthropic(base_url=url, api_key="x", max_retries=0)
    try:
        with client.messages.stream(**ASKED) as stream:
            for text_piece in stream.text_stream:
                text += text_piece
            return stream.get_final_message(), text
    except APIError as error:
        return error, text


@pytest.mark.parametrize("protocol", MESSAGES)
def test_throttling_before_any_content_is_a_status(cloud: StandIn, serve: Serve, protocol: str) -> None:
    cloud.answer = lambda sent: Answer(MESSAGES[protocol][0] + THROTTLED, aws.STREAM)
    with serve(config(cloud, protocol)) as gateway:
        error, text = ask(gateway.url)
    assert isinstance(error, APIStatusError)
    assert (error.status_code, text) == (429, "")
    assert "Too many tokens" in error.message


@pytest.mark.parametrize("protocol", MESSAGES)
@pytest.mark.parametrize(
    ("rest", "kind", "said"),
    [
        (THROTTLED, "rate_limit_error", "Too many tokens"),
        (BROKEN, "api_error", "The model broke."),
    ],
)
def test_an_exception_in_the_middle_is_an_error(
    cloud: StandIn, serve: Serve, protocol: str, rest: bytes, kind: str, said: str
) -> None:
    begun = b"".join(MESSAGES[protocol][:7])
    cloud.answer = lambda sent: Answer(begun + rest + b"".join(MESSAGES[protocol][7:]), aws.STREAM)
    with serve(config(cloud, protocol)) as gateway:
        error, text = ask(gateway.url)
    assert isinstance(error, APIError)
    assert text == "Let me see." if protocol == "anthropic" else text.startswith("Let me")
    body: Any = error.body
    assert body["error"]["type"] == kind
    assert said in body["error"]["message"]


@pytest.mark.parametrize("protocol", MESSAGES)
def test_a_wrong_checksum_is_an_error(cloud: StandIn, serve: Serve, protocol: str) -> None:
    whole = bytearray(b"".join(MESSAGES[protocol]))
    at = len(b"".join(MESSAGES[protocol][:8])) + 40
    whole[at] ^= 1
    cloud.answer = lambda sent: Answer(bytes(whole), aws.STREAM)
    with serve(config(cloud, protocol)) as gateway:
        error, _ = ask(gateway.url)
    assert isinstance(error, APIError)
    assert "checksum" in str(error.body)


@pytest.mark.parametrize("protocol", MESSAGES)
@pytest.mark.parametrize("lost", [1, 30])
@pytest.mark.parametrize("connection", [False, True])
def test_a_cut_message_is_an_error(
    cloud: StandIn, serve: Serve, protocol: str, lost: int, connection: bool
) -> None:
    """Cut inside the arguments of a call: the client must not get it as a complete one."""
    begun = b"".join(MESSAGES[protocol][: 7 if protocol == "anthropic" else 11])[:-lost]
    cloud.answer = lambda sent: Answer(begun, aws.STREAM, cut=connection)
    with serve(config(cloud, protocol)) as gateway:
        error, _ = ask(gateway.url)
    assert isinstance(error, APIError)


def test_a_refusal_says_why(cloud: StandIn, serve: Serve) -> None:
    def refuse(sent: Sent) -> Answer:
        return Answer(b'{"message":"The provided model identifier is invalid."}', status=400)

    cloud.answer = refuse
    with serve(config(cloud, "anthropic")) as gateway:
        error, _ = ask(gateway.url)
    assert isinstance(error, APIStatusError)
    assert error.status_code == 400
    assert "model identifier is invalid" in error.message


NAMED = {
    # The header that names an error, the status at AWS, and what the client is told.
    "ServiceQuotaExceededException": (400, 429, "rate_limit_error"),
    "ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/": (
        400,
        429,
        "rate_limit_error",
    ),
    "ExpiredTokenException": (403, 403, "authentication_error"),
    "AccessDeniedException": (403, 403, "permission_error"),
    "ValidationException": (400, 400, "invalid_request_error"),
    "ModelNotReadyException": (429, 429, "overloaded_error"),
}


@pytest.mark.parametrize("name", NAMED)
def test_the_header_names_the_error(cloud: StandIn, serve: Serve, name: str) -> None:
    """The body of an error has no name, and the status of some is 400, though the request is right."""
    status, told, kind = NAMED[name]
    cloud.answer = lambda sent: Answer(
        b'{"message":"so it is"}', "application/json", status, {"x-amzn-ErrorType": name}
    )
    with serve(config(cloud, "anthropic")) as gateway:
        error, _ = ask(gateway.url)
    assert isinstance(error, APIStatusError)
    body: Any = error.body
    assert (error.status_code, body["error"]) == (told, {"type": kind, "message": "so it is"})


def test_a_used_up_quota_of_one_account_moves_to_the_next(
    cloud: StandIn, serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / ".aws").mkdir()
    profiles = {"first": "AKIAFIRST", "second": "AKIASECOND"}
    lines = (
        f"[{name}]\naws_access_key_id = {key}\naws_secret_access_key = {aws.KEYS[key]}\n"
        for name, key in profiles.items()
    )
    (tmp_path / ".aws" / "credentials").write_text("".join(lines))

    def refuse_once(sent: Sent) -> Answer:
        if len(cloud.sent) > 1:
            return aws.bedrock(sent)
        headers = {"x-amzn-ErrorType": "ServiceQuotaExceededException"}
        return Answer(b'{"message":"over your quota"}', "application/json", 400, headers)

    cloud.answer = refuse_once
    text = config(cloud, "anthropic").replace(
        'credential = "aws"', 'credentials = [{ aws = "first" }, { aws = "second" }]'
    )
    with serve(text) as gateway:
        message, _ = ask(gateway.url)
    assert message.stop_reason == "tool_use"
    assert {aws.signer(sent, cloud.url) for sent in cloud.sent} == set(profiles.values())


def test_a_model_that_failed_is_not_the_clients_fault(cloud: StandIn, serve: Serve) -> None:
    cloud.answer = lambda sent: Answer(b'{"message":"The model failed."}', status=424)
    with serve(config(cloud, "anthropic")) as gateway:
        error, _ = ask(gateway.url)
    assert isinstance(error, APIStatusError)
    body: Any = error.body
    assert body["error"] == {"type": "api_error", "message": "The model failed."}


def test_converse_is_asked_again_for_an_invalid_call(cloud: StandIn, serve: Serve) -> None:
    """`path` of the first answer's call is not there: the model is made to repeat it."""
    whole = b"".join(MESSAGES["bedrock-converse"])
    wrong = [
        encode_event(kind, json.dumps(event).replace("path", "nothing").encode())
        for kind, event in aws.CONVERSE
    ]
    cloud.answer = lambda sent: Answer(b"".join(wrong) if len(cloud.sent) == 1 else whole, aws.STREAM)
    schema = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "mode": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    }
    text = config(cloud, "bedrock-converse") + '[tools]\ninvalid = "reask"\n'
    with serve(text) as gateway:
        client = Anthropic(base_url=gateway.url, api_key="x", max_retries=0)
        with client.messages.stream(**ASKED, tools=[{"name": "read", "input_schema": schema}]) as stream:
            message = stream.get_final_message()
    calls = [block for block in message.content if block.type == "tool_use"]
    assert [call.input for call in calls] == [{"path": "a.py"}]
    assert cloud.sent[1].json["toolConfig"]["toolChoice"] == {"tool": {"name": "read"}}
