"""Anthropic's SDKs in their modes for Bedrock and Vertex AI, and boto3, with the gateway as the cloud."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from anthropic import (
    AnthropicBedrock,
    AnthropicBedrockMantle,
    AnthropicFoundry,
    AnthropicVertex,
    APIError,
    APIStatusError,
)
from botocore.config import Config
from botocore.exceptions import ClientError
from google import genai
from google.genai import errors, types
from google.oauth2.credentials import Credentials
from support import aws
from support.plain_http import post
from support.serving import Serve
from support.stand_in import Answer, Sent, StandIn, as_json, events, standing_in
from test_vertex import CHAT

CHUNKS = [
    {"role": "assistant", "content": "Let me see."},
    {"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "read", "arguments": '{"path":'}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": ' "a.py"}'}}]},
]
ASKED: dict[str, Any] = {
    "max_tokens": 500,
    "messages": [{"role": "user", "content": "Read a.py"}],
    "tools": [
        {"name": "read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
    ],
}


def answering(sent: Sent) -> Answer:
    if sent.path.endswith("/count_tokens"):
        return as_json({"input_tokens": 42})
    if sent.path.endswith("/chat/completions"):
        if not sent.json.get("stream"):
            return as_json(CHAT)
        chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in CHUNKS]
        choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
        frames = [f"data: {json.dumps(chunk | {'choices': [choice]})}\n\n" for choice in choices]
        return Answer("".join([*frames, "data: [DONE]\n\n"]).encode(), "text/event-stream")
    if sent.json.get("stream"):
        return events(*((str(event["type"]), event) for event in aws.CLAUDE))
    return as_json(aws.message())


@pytest.fixture
def upstream() -> Iterator[StandIn]:
    with standing_in(answering) as place:
        yield place


def config(upstream: StandIn) -> str:
    return (
        f'[upstreams.claude]\nprotocol = "anthropic"\nbase_url = "{upstream.url}"\n'
        f'[upstreams.chat]\nprotocol = "openai-chat"\nbase_url = "{upstream.url}"\n'
        '[[routes]]\nmatch = "*"\nto = "claude/*"'
    )


def bedrock(url: str) -> AnthropicBedrock:
    keys = {"aws_access_key": "AKIAFIRST", "aws_secret_key": "x", "aws_region": "us-east-1"}
    return AnthropicBedrock(base_url=url, max_retries=0, **keys)


def vertex(url: str) -> AnthropicVertex:
    return AnthropicVertex(
        base_url=f"{url}/v1", region="global", project_id="p", access_token="t", max_retries=0
    )


MODES: dict[str, Callable[[str], Any]] = {"bedrock": bedrock, "vertex": vertex}
modes = pytest.mark.parametrize("client", MODES.values(), ids=MODES)
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
ARN = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3d4e5f6"


def streamed(sdk: Any) -> tuple[Any, str, Any]:
    """The message, the text that came before an error, and the error."""
    text = ""
    try:
        with sdk.messages.stream(**ASKED, model=MODEL) as stream:
            for piece in stream.text_stream:
                text += piece
            return stream.get_final_message(), text, None
    except APIError as error:
        return None, text, error


@modes
@pytest.mark.parametrize("model", [MODEL, "claude-sonnet-4-5@20250929"])
def test_the_same_protocol_passes(upstream: StandIn, serve: Serve, client: Any, model: str) -> None:
    with serve(config(upstream)) as gateway:
        sdk = client(gateway.url)
        with sdk.messages.stream(**ASKED, model=model) as stream:
            message = stream.get_final_message()
        whole = sdk.beta.messages.create(**ASKED, model=model, betas=["context-1m-2025-08-07"])
    assert message.to_dict()["content"] == whole.to_dict()["content"] == aws.message()["content"]
    streamed, asked = upstream.sent
    assert streamed.path == asked.path == "/v1/messages"
    assert streamed.json == {"model": model, "stream": True, **ASKED}
    assert asked.json["model"] == model
    assert not {"anthropic_version", "anthropic_beta"} & (streamed.json.keys() | asked.json.keys())
    assert asked.headers["anthropic-beta"] == "context-1m-2025-08-07"


@modes
def test_another_protocol_is_translated(upstream: StandIn, serve: Serve, client: Any) -> None:
    with serve(config(upstream).replace('"claude/*"', '"chat/*"')) as gateway:
        message, _, error = streamed(client(gateway.url))
    assert error is None
    assert [block.type for block in message.content] == ["text", "tool_use"]
    assert message.content[1].input == {"path": "a.py"}
    assert message.stop_reason == "tool_use"
    assert upstream.only.path == "/v1/chat/completions"


def test_an_arn_is_one_name(upstream: StandIn, serve: Serve) -> None:
    with serve(config(upstream)) as gateway:
        bedrock(gateway.url).messages.create(**ASKED, model=ARN)
    assert upstream.only.json["model"] == ARN


@modes
def test_an_error_before_the_answer_has_its_status(upstream: StandIn, serve: Serve, client: Any) -> None:
    upstream.answer = lambda sent: as_json({"type": "error", "error": {"type": "x", "message": "no"}}, 429)
    with serve(config(upstream)) as gateway:
        _, _, error = streamed(client(gateway.url))
    assert isinstance(error, APIStatusError)
    assert (error.status_code, "no" in error.message) == (429, True)


@modes
@pytest.mark.parametrize(
    ("kind", "exception"),
    [("overloaded_error", "serviceUnavailableException"), ("api_error", "internalServerException")],
)
def test_an_error_in_the_middle_is_raised(
    upstream: StandIn, serve: Serve, client: Any, kind: str, exception: str
) -> None:
    error = {"type": "error", "error": {"type": kind, "message": "too busy"}}
    upstream.answer = lambda sent: events(
        *((str(event["type"]), event) for event in aws.CLAUDE[:3]), ("error", error)
    )
    with serve(config(upstream)) as gateway:
        _, text, raised = streamed(client(gateway.url))
    assert text == "Let me see."
    body: Any = raised.body
    assert body["error"]["message"] == "too busy"
    assert body["error"]["type"] == (exception if client is bedrock else kind)


def boto(url: str) -> Any:
    once = Config(retries={"total_max_attempts": 1})
    return boto3.client("bedrock-runtime", "us-east-1", endpoint_url=url, config=once)


@pytest.fixture
def aws_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAFIRST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")


@pytest.mark.usefixtures("aws_keys")
def test_boto3_reads_the_stream(upstream: StandIn, serve: Serve) -> None:
    body = json.dumps({**ASKED, "anthropic_version": "bedrock-2023-05-31", "anthropic_beta": ["a-1", "b-2"]})
    with serve(config(upstream)) as gateway:
        client = boto(gateway.url)
        answer = client.invoke_model_with_response_stream(modelId=ARN, body=body)
        kinds = [json.loads(event["chunk"]["bytes"])["type"] for event in answer["body"]]
        whole = json.loads(client.invoke_model(modelId=ARN, body=body)["body"].read())
    # Dragoman may join fragments of arguments.
    assert list(dict.fromkeys(kinds)) == list(dict.fromkeys(event["type"] for event in aws.CLAUDE))
    assert whole == aws.message()
    assert [sent.headers["anthropic-beta"] for sent in upstream.sent] == ["a-1,b-2", "a-1,b-2"]


ERRORS = {
    "rate_limit_error": (429, "ThrottlingException"),
    "invalid_request_error": (400, "ValidationException"),
    "permission_error": (403, "AccessDeniedException"),
    "not_found_error": (404, "ResourceNotFoundException"),
    "api_error": (500, "InternalServerException"),
}


@pytest.mark.usefixtures("aws_keys")
@pytest.mark.parametrize("kind", ERRORS)
def test_boto3_reads_an_error(upstream: StandIn, serve: Serve, kind: str) -> None:
    status, code = ERRORS[kind]
    error = {"type": "error", "error": {"type": kind, "message": "so it is"}}
    upstream.answer = lambda sent: as_json(error, status)
    with serve(config(upstream)) as gateway:
        client = boto(gateway.url)
        for ask in (client.invoke_model, client.invoke_model_with_response_stream):
            with pytest.raises(ClientError) as caught:
                ask(modelId=ARN, body=json.dumps(ASKED))
            assert caught.value.response["Error"] == {"Code": code, "Message": "so it is"}
            assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
            if hasattr(client.exceptions, code):
                assert isinstance(caught.value, getattr(client.exceptions, code))


@pytest.mark.usefixtures("aws_keys")
def test_boto3_gets_an_error_for_converse(upstream: StandIn, serve: Serve) -> None:
    said: Any = [{"role": "user", "content": [{"text": "hi"}]}]
    with serve(config(upstream)) as gateway, pytest.raises(ClientError, match="/converse does not exist"):
        boto(gateway.url).converse(modelId=MODEL, messages=said)
    assert upstream.sent == []


def test_a_client_of_bedrock_sends_a_key_of_the_gateway(upstream: StandIn, serve: Serve) -> None:
    with serve(f'keys = ["the-gateways-key"]\n{config(upstream)}') as gateway:
        for key, status in (("wrong", 401), ("the-gateways-key", None)):
            sdk = AnthropicBedrock(base_url=gateway.url, api_key=key, aws_region="us-east-1", max_retries=0)
            if status is None:
                sdk.messages.create(**ASKED, model=MODEL)
            else:
                with pytest.raises(APIStatusError) as caught:
                    sdk.messages.create(**ASKED, model=MODEL)
                assert caught.value.status_code == status
    assert "the-gateways-key" not in str(upstream.only)


@pytest.mark.usefixtures("aws_keys")
@pytest.mark.parametrize("model", [MODEL, ARN])
def test_boto3_counts_tokens(upstream: StandIn, serve: Serve, model: str) -> None:
    """Claude Code's Bedrock mode counts in this way."""
    body = {**ASKED, "anthropic_version": "bedrock-2023-05-31"}
    with serve(config(upstream)) as gateway:
        client = boto(gateway.url)
        counted = client.count_tokens(modelId=model, input={"invokeModel": {"body": json.dumps(body)}})
        assert counted["inputTokens"] == 42
        said: Any = [{"role": "user", "content": [{"text": "hi"}]}]
        with pytest.raises(ClientError, match=r"input\.invokeModel\.body: must be the body"):
            client.count_tokens(modelId=model, input={"converse": {"messages": said}})
        with pytest.raises(ClientError, match=r"input\.invokeModel\.body: must be JSON"):
            client.count_tokens(modelId=model, input={"invokeModel": {"body": "no JSON"}})
    asked = {key: value for key, value in ASKED.items() if key != "max_tokens"}
    assert upstream.only.json == {"model": model, **asked}


def test_vertex_counts_tokens(upstream: StandIn, serve: Serve) -> None:
    asked = {key: value for key, value in ASKED.items() if key != "max_tokens"}
    with serve(config(upstream)) as gateway:
        assert vertex(gateway.url).messages.count_tokens(**asked, model=MODEL).input_tokens == 42
    assert upstream.only.json == {"model": MODEL, **asked}


@modes
def test_a_wrong_request_is_refused(upstream: StandIn, serve: Serve, client: Any) -> None:
    with serve(config(upstream)) as gateway, pytest.raises(APIStatusError, match="messages") as caught:
        client(gateway.url).messages.create(max_tokens=5, messages="no list", model=MODEL)
    assert caught.value.status_code == 400


def test_wrong_betas_are_refused(upstream: StandIn, serve: Serve) -> None:
    with serve(config(upstream)) as gateway:
        status, body = gateway.loop.run(gateway.ask("/model/m/invoke", {**ASKED, "anthropic_beta": "x"}))
    assert (status, upstream.sent) == (400, [])
    assert b"anthropic_beta: must be a list of strings" in body


def google(url: str) -> genai.Client:
    """Google's SDK in its mode for Vertex AI."""
    options = types.HttpOptions(base_url=url)
    token = Credentials("the-gateways-key")
    return genai.Client(
        vertexai=True, project="p", location="global", credentials=token, http_options=options
    )


def test_googles_sdk_in_its_mode_for_vertex(upstream: StandIn, serve: Serve) -> None:
    with serve(f'keys = ["the-gateways-key"]\n{config(upstream)}') as gateway:
        client = google(gateway.url)
        models = client.models
        whole = models.generate_content(model="gemini-3-pro", contents="Read a.py")
        streamed = [*models.generate_content_stream(model="gemini-3-pro", contents="Read a.py")]
        assert models.count_tokens(model="gemini-3-pro", contents="Read a.py").total_tokens == 42
    [call] = whole.function_calls or []
    assert (whole.text, call.name, call.args) == ("Let me see.", "read", {"path": "a.py"})
    assert "".join(chunk.text or "" for chunk in streamed) == "Let me see."
    assert streamed[-1].usage_metadata is not None
    assert {sent.json["model"] for sent in upstream.sent} == {"gemini-3-pro"}
    assert "the-gateways-key" not in str(upstream.sent)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_vertex_with_an_api_key_names_no_project(upstream: StandIn, serve: Serve, version: str) -> None:
    asked = {"contents": [{"role": "user", "parts": [{"text": "Read a.py"}]}]}
    with serve(config(upstream)) as gateway:
        got = post(f"{gateway.url}/{version}/publishers/google/models/m:generateContent", asked)
    assert got.json["candidates"][0]["finishReason"] == "STOP"
    assert upstream.only.json["model"] == "m"


def test_what_googles_sdk_reads_of_an_error(upstream: StandIn, serve: Serve) -> None:
    error = {"type": "error", "error": {"type": "rate_limit_error", "message": "so it is"}}
    upstream.answer = lambda sent: as_json(error, 429)
    with serve(config(upstream)) as gateway:
        client = google(gateway.url)
        with pytest.raises(errors.ClientError, match="so it is") as caught:
            client.models.generate_content(model="m", contents="hi")
        assert (caught.value.code, caught.value.status) == (429, "RESOURCE_EXHAUSTED")
        with pytest.raises(errors.ClientError, match="does not exist") as caught:
            client.models.embed_content(model="m", contents="hi")
        assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")


@pytest.mark.parametrize("sdk", [AnthropicFoundry, AnthropicBedrockMantle])
def test_other_modes_ask_at_the_usual_paths(upstream: StandIn, serve: Serve, sdk: Any) -> None:
    more = {"aws_region": "us-east-1"} if sdk is AnthropicBedrockMantle else {}
    with serve(f'keys = ["the-gateways-key"]\n{config(upstream)}') as gateway:
        client = sdk(base_url=gateway.url, api_key="the-gateways-key", max_retries=0, **more)
        assert client.messages.create(**ASKED, model=MODEL).to_dict()["content"] == aws.message()["content"]
