"""Bedrock: Dragoman sends what Anthropic's SDK and boto3 send, and reads what they read."""

import json
from collections.abc import Iterator
from typing import Any, Literal
from urllib.parse import unquote

import boto3
import pytest
from anthropic import Anthropic, AnthropicBedrock, AnthropicBedrockMantle
from botocore.config import Config
from openai import OpenAI, providers
from support import aws
from support.serving import Serve
from support.stand_in import StandIn, as_json, events, standing_in
from test_azure import RESPONSE

from dragoman.config import loads

MODELS = [
    "anthropic.claude-3-5-sonnet-20240620-v1:0",
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3d4e5f6",
]
TOOLS: list[Any] = [
    {
        "name": "read",
        "description": "Read a file.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    }
]
ASKED: dict[str, Any] = {
    "max_tokens": 500,
    "system": "Be brief.",
    "messages": [{"role": "user", "content": "Read a.py"}],
    "tools": TOOLS,
    "tool_choice": {"type": "auto"},
    "stop_sequences": ["END"],
}


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAFIRST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", aws.KEYS["AKIAFIRST"])
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-session-token")
    with standing_in(aws.bedrock) as place:
        yield place


def config(cloud: StandIn, more: str = "") -> str:
    # No account's credentials go to an address that is not AWS's unless the config says so.
    credential = "" if "credential" in more else 'credential = "aws"\n'
    return f'[upstreams.bedrock]\nregion = "us-east-1"\nbase_url = "{cloud.url}"\n{credential}{more}'


def sdk(cloud: StandIn) -> AnthropicBedrock:
    return AnthropicBedrock(base_url=cloud.url, aws_region="us-east-1", max_retries=0)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_claude_is_asked_as_its_sdk_asks(cloud: StandIn, serve: Serve, model: str, stream: bool) -> None:
    asked = {**ASKED, "model": model, "betas": ["context-1m-2025-08-07", "interleaved-thinking-2025-05-14"]}
    answer: Any = sdk(cloud).beta.messages.create(**asked, stream=stream)
    for _ in answer if stream else ():
        pass
    theirs = cloud.only
    with serve(config(cloud, 'anthropic_version = "2026-10-21"')) as gateway:
        client = Anthropic(base_url=gateway.url, api_key="x", max_retries=0)
        answer = client.beta.messages.create(**asked | {"model": f"bedrock/{model}"}, stream=stream)
        for _ in answer if stream else ():
            pass
    ours = cloud.only
    assert (ours.method, ours.path, ours.json) == (theirs.method, theirs.path, theirs.json)
    for name in ("content-type", "accept", "x-amz-security-token"):
        assert ours.headers[name] == theirs.headers[name]
    assert aws.signer(ours, cloud.url) == aws.signer(theirs, cloud.url) == "AKIAFIRST"
    assert "content-type" in ours.headers["authorization"]


def test_the_version_is_supported_by_all_models(cloud: StandIn, serve: Serve) -> None:
    with serve(config(cloud)) as gateway:
        Anthropic(base_url=gateway.url, api_key="x").messages.create(
            **ASKED, model="bedrock/anthropic.x-v1:0"
        )
    sent = cloud.only
    assert sent.json["anthropic_version"] == "bedrock-2023-05-31"
    assert not {"model", "stream", "anthropic_beta"} & sent.json.keys()
    assert not {"anthropic-version", "anthropic-beta", "x-api-key"} & sent.headers.keys()


def test_the_answer_is_the_one_that_the_sdk_reads(cloud: StandIn, serve: Serve) -> None:
    with sdk(cloud).messages.stream(**ASKED, model=MODELS[0]) as stream:
        theirs = stream.get_final_message()
    with serve(config(cloud)) as gateway:
        client = Anthropic(base_url=gateway.url, api_key="x", max_retries=0)
        with client.messages.stream(**ASKED, model=f"bedrock/{MODELS[0]}") as stream:
            ours = stream.get_final_message()
        whole = client.messages.create(**ASKED, model=f"bedrock/{MODELS[0]}")
        chat = OpenAI(base_url=f"{gateway.url}/v1", api_key="x").chat.completions.create(
            model=f"bedrock/{MODELS[0]}", messages=[{"role": "user", "content": "Read a.py"}]
        )
    assert ours.to_dict() == theirs.to_dict()
    assert whole.to_dict() == aws.message()
    call: Any = (chat.choices[0].message.tool_calls or [None])[0]
    assert json.loads(call.function.arguments) == {"path": "a.py"}


def test_features_that_name_the_client_are_not_listed(cloud: StandIn, serve: Serve) -> None:
    """Claude Code's own Bedrock mode does not put them into the body either: Bedrock refuses unknown ones."""
    betas = "claude-code-20250219,interleaved-thinking-2025-05-14,oauth-2025-04-20"
    with serve(config(cloud)) as gateway:
        asked = {**ASKED, "model": "bedrock/anthropic.m"}
        gateway.loop.run(gateway.ask("/v1/messages", asked, **{"anthropic-beta": betas}))
        gateway.loop.run(gateway.ask("/v1/messages", asked, **{"anthropic-beta": "claude-code-20250219"}))
    first, second = cloud.sent
    assert first.json["anthropic_beta"] == ["interleaved-thinking-2025-05-14"]
    assert "anthropic_beta" not in second.json


def test_a_key_is_a_bearer_token_by_data_only(
    cloud: StandIn, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-1")
    with serve(config(cloud, 'credential = "env:AWS_BEARER_TOKEN_BEDROCK"')) as gateway:
        Anthropic(base_url=gateway.url, api_key="x").messages.create(**ASKED, model="bedrock/anthropic.m")
    assert cloud.only.headers["authorization"] == "Bearer bedrock-api-key-1"


def test_mantle_signs_for_a_service_of_its_own(cloud: StandIn, serve: Serve) -> None:
    cloud.answer = lambda sent: as_json(aws.message())
    theirs = AnthropicBedrockMantle(
        base_url=f"{cloud.url}/anthropic", aws_region="us-east-1", aws_access_key="AKIAFIRST",
        aws_secret_key=aws.KEYS["AKIAFIRST"], max_retries=0,
    )  # fmt: skip
    theirs.messages.create(**ASKED, model="anthropic.claude-x")
    expected = cloud.only
    assert aws.signer(expected, cloud.url, service="bedrock-mantle") == "AKIAFIRST"
    text = f'[upstreams.bedrock-mantle]\nregion = "us-east-1"\nbase_url = "{cloud.url}/anthropic"\n'
    with serve(f'{text}credential = "aws"') as gateway:
        client = Anthropic(base_url=gateway.url, api_key="x", max_retries=0)
        client.messages.create(**ASKED, model="bedrock-mantle/anthropic.claude-x")
    ours = cloud.only
    assert (ours.method, ours.path) == (expected.method, expected.path)
    assert aws.signer(ours, cloud.url, service="bedrock-mantle") == "AKIAFIRST"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("endpoint", ["runtime", "mantle"])
def test_openais_protocol_is_asked_as_its_sdk_asks(
    cloud: StandIn, serve: Serve, endpoint: Literal["runtime", "mantle"], stream: bool
) -> None:
    name, service = {"runtime": ("bedrock", "bedrock"), "mantle": ("bedrock-mantle", "bedrock-mantle")}[
        endpoint
    ]
    cloud.answer = lambda sent: (
        events(("response.completed", {"type": "response.completed", "response": RESPONSE}))
        if stream
        else as_json(RESPONSE)
    )
    place = providers.bedrock(
        endpoint=endpoint, region="us-east-1", base_url=f"{cloud.url}/openai/v1", profile=None,
        access_key_id="AKIAFIRST", secret_access_key=aws.KEYS["AKIAFIRST"],
    )  # fmt: skip
    asked: dict[str, Any] = {"model": "openai.gpt-oss-120b", "input": "Hello", "stream": stream}
    answer: Any = OpenAI(provider=place, max_retries=0).responses.create(**asked)
    for _ in answer if stream else ():
        pass
    theirs = cloud.only
    text = f'[upstreams.{name}]\nprotocol = "openai-responses"\nregion = "us-east-1"\ncredential = "aws"\n'
    usual = providers.bedrock(endpoint=endpoint, region="us-east-1", api_key="x")
    assert f"{OpenAI(provider=usual).base_url}responses" == loads(text).upstreams[name].url("/v1/responses")
    with serve(f'{text}base_url = "{cloud.url}/openai/v1"') as gateway:
        client = OpenAI(base_url=f"{gateway.url}/v1", api_key="x", max_retries=0)
        answer = client.responses.create(**asked | {"model": f"{name}/openai.gpt-oss-120b"})
        for _ in answer if stream else ():
            pass
    ours = cloud.only
    assert (ours.method, ours.path, ours.json) == (theirs.method, theirs.path, theirs.json)
    assert aws.signer(ours, cloud.url, service=service) == aws.signer(theirs, cloud.url, service=service)


@pytest.mark.parametrize("model", ["..", "."])
def test_no_name_leads_elsewhere(cloud: StandIn, serve: Serve, model: str) -> None:
    with serve(config(cloud)) as gateway:
        status, body = gateway.loop.run(gateway.ask("/v1/messages", {**ASKED, "model": f"bedrock/{model}"}))
    assert (status, cloud.sent) == (400, [])
    assert b"cannot stand in a path" in body


# Converse


def converse(cloud: StandIn) -> Any:
    return boto3.client(
        "bedrock-runtime", "us-east-1", endpoint_url=cloud.url, config=Config(retries={"max_attempts": 1})
    )


SAID: dict[str, Any] = {
    "messages": [
        {
            "role": "user",
            "content": [{"text": "Look"}, {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}],
        },
        {
            "role": "assistant",
            "content": [
                {"text": "I read it."},
                {"toolUse": {"toolUseId": "tooluse_0", "name": "read", "input": {"path": "b.py"}}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "toolResult": {
                        "toolUseId": "tooluse_0",
                        "content": [{"text": "no file"}],
                        "status": "error",
                    }
                },
                {"text": "Try a.py"},
            ],
        },
    ],
    "system": [{"text": "Be brief."}],
    "inferenceConfig": {"maxTokens": 500, "temperature": 0.5, "stopSequences": ["END"]},
    "toolConfig": {
        "tools": [
            {
                "toolSpec": {
                    "name": "read",
                    "description": "Read a file.",
                    "inputSchema": {"json": TOOLS[0]["input_schema"]},
                }
            }
        ],
        "toolChoice": {"any": {}},
    },
}
SAID_TO_US: dict[str, Any] = {
    "system": "Be brief.",
    "max_tokens": 500,
    "extra_body": {"temperature": 0.5},
    "stop_sequences": ["END"],
    "tools": TOOLS,
    "tool_choice": {"type": "any"},
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Look"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I read it."},
                {"type": "tool_use", "id": "tooluse_0", "name": "read", "input": {"path": "b.py"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "tooluse_0", "content": "no file", "is_error": True},
                {"type": "text", "text": "Try a.py"},
            ],
        },
    ],
}
OTHERS = ["meta.llama3-1-70b-instruct-v1:0", "us.amazon.nova-pro-v1:0", MODELS[2]]
CONVERSE = 'protocol = "bedrock-converse"\ncache_marks = false'


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", OTHERS)
def test_other_models_are_asked_as_boto3_asks(cloud: StandIn, serve: Serve, model: str, stream: bool) -> None:
    if stream:
        assert len(list(converse(cloud).converse_stream(modelId=model, **SAID)["stream"])) == len(
            aws.CONVERSE
        )
    else:
        converse(cloud).converse(modelId=model, **SAID)
    theirs = cloud.only
    with serve(config(cloud, CONVERSE)) as gateway:
        client = Anthropic(base_url=gateway.url, api_key="x", max_retries=0)
        answer: Any = client.messages.create(**SAID_TO_US, model=f"bedrock/{model}", stream=stream)
        for _ in answer if stream else ():
            pass
    ours = cloud.only
    assert (ours.method, ours.path, ours.json) == (theirs.method, theirs.path, theirs.json)
    assert unquote(ours.path) == f"/model/{model}/converse{'-stream' if stream else ''}"
    assert aws.signer(ours, cloud.url) == aws.signer(theirs, cloud.url)


@pytest.mark.parametrize("stream", [False, True])
def test_the_answer_of_converse(cloud: StandIn, serve: Serve, stream: bool) -> None:
    with serve(config(cloud, CONVERSE)) as gateway:
        client = Anthropic(base_url=gateway.url, api_key="x", max_retries=0)
        asked = {**SAID_TO_US, "model": f"bedrock/{OTHERS[0]}"}
        if stream:
            with client.messages.stream(**asked) as streaming:
                answer = streaming.get_final_message()
        else:
            answer = client.messages.create(**asked)
    thought, text, call = answer.content
    assert (thought.type, text.type, call.type) == ("thinking", "text", "tool_use")
    assert (thought.thinking, text.text) == ("They want a file.", "Let me see.")
    assert (call.id, call.name, call.input) == ("tooluse_1", "read", {"path": "a.py"})
    assert answer.stop_reason == "tool_use"
    assert (answer.usage.input_tokens, answer.usage.cache_read_input_tokens) == (12, 5)
    assert answer.usage.output_tokens == 34


def test_a_signed_thought_goes_back_to_converse(cloud: StandIn, serve: Serve) -> None:
    """The client keeps it in its own slot; boto3's own form of it reaches the upstream."""
    with serve(config(cloud, CONVERSE)) as gateway:
        client = Anthropic(base_url=gateway.url, api_key="x", max_retries=0)
        asked = {
            **SAID_TO_US,
            "model": f"bedrock/{MODELS[1]}",
            "thinking": {"type": "enabled", "budget_tokens": 1024},
        }
        asked |= {"max_tokens": 4000, "tool_choice": {"type": "auto"}}
        asked.pop("extra_body")
        with client.messages.stream(**asked) as stream:
            said = stream.get_final_message()
        result = {"type": "tool_result", "tool_use_id": "tooluse_1", "content": "x = 1"}
        asked["messages"] = [
            *SAID_TO_US["messages"],
            {"role": "assistant", "content": [block.to_dict() for block in said.content]},
            {"role": "user", "content": [result]},
        ]
        client.messages.create(**asked)
    first, second = cloud.sent
    assert first.json["additionalModelRequestFields"] == {
        "thinking": {"type": "enabled", "budget_tokens": 1024}
    }
    assert second.json["messages"][-2]["content"][0] == {
        "reasoningContent": {"reasoningText": {"text": "They want a file.", "signature": "c2lnbmVk"}}
    }
