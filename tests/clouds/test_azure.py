"""Azure: Dragoman sends what OpenAI's and Anthropic's SDKs send, with a key or an Entra ID token."""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from anthropic import Anthropic, AnthropicFoundry
from openai import AzureOpenAI, OpenAI
from support import aws
from support.serving import Serve
from support.stand_in import Answer, Sent, StandIn, as_json, standing_in

CHAT = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-5",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-5",
    "status": "completed",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
        }
    ],
}
SAID: Any = [{"role": "user", "content": "Hello"}]
VERSION = "2024-10-21"


class Azure:
    """A managed identity's endpoint and the models, in one place."""

    def __init__(self) -> None:
        self.issued: list[Sent] = []
        self.valid = "theirs"

    def __call__(self, sent: Sent) -> Answer:
        if sent.path.startswith("/identity"):
            self.issued.append(sent)
            self.valid = f"entra-token-{len(self.issued)}"
            token = {
                "access_token": self.valid,
                "expires_on": str(int(time.time()) + 86_000),
                "resource": "r",
            }
            return as_json(token | {"token_type": "Bearer"})
        bearer = sent.headers.get("authorization")
        if bearer not in (None, f"Bearer {self.valid}", "Bearer theirs"):
            return as_json({"error": {"code": "Unauthorized", "message": "Access token has expired"}}, 401)
        if sent.path.endswith("/messages"):
            return as_json(aws.message())
        return as_json(CHAT if "/chat/" in sent.path else RESPONSE)


@pytest.fixture
def azure() -> Azure:
    return Azure()


@pytest.fixture
def cloud(azure: Azure, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "an-azure-key")
    monkeypatch.setenv("ANTHROPIC_FOUNDRY_API_KEY", "a-foundry-key")
    with standing_in(azure) as place:
        yield place


@pytest.fixture
def identity(cloud: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has a managed identity."""
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{cloud.url}/identity")
    monkeypatch.setenv("IDENTITY_HEADER", "a-header")


def same(ours: Sent, theirs: Sent) -> None:
    assert (ours.method, ours.path, ours.json) == (theirs.method, theirs.path, theirs.json)
    for name in ("api-key", "authorization", "x-api-key"):
        assert (name, ours.headers.get(name)) == (name, theirs.headers.get(name))


def test_a_deployment_of_a_dated_version(cloud: StandIn, serve: Serve) -> None:
    sdk = AzureOpenAI(azure_endpoint=cloud.url, api_version=VERSION, api_key="an-azure-key")
    sdk.chat.completions.create(model="my-deployment", messages=SAID)
    theirs = cloud.only
    text = f'[upstreams.azure-deployments]\nbase_url = "{cloud.url}"\napi_version = "{VERSION}"'
    with serve(text) as gateway:
        client = OpenAI(base_url=f"{gateway.url}/v1", api_key="x")
        client.chat.completions.create(model="azure-deployments/my-deployment", messages=SAID)
    same(cloud.only, theirs)


def test_responses_of_a_dated_version(cloud: StandIn, serve: Serve) -> None:
    sdk = AzureOpenAI(azure_endpoint=cloud.url, api_version="2025-04-01-preview", api_key="an-azure-key")
    sdk.responses.create(model="my-deployment", input="Hello")
    theirs = cloud.only
    text = f"""
        [upstreams.azure]
        provider = "azure-deployments"
        protocol = "openai-responses"
        base_url = "{cloud.url}"
        api_version = "2025-04-01-preview"
    """
    with serve(text) as gateway:
        client = OpenAI(base_url=f"{gateway.url}/v1", api_key="x")
        client.responses.create(model="azure/my-deployment", input="Hello")
    same(cloud.only, theirs)


OTHERS: dict[str, Callable[[Any, str], Any]] = {
    "embeddings": lambda c, model: c.embeddings.create(model=model, input="hi", encoding_format="float"),
    "images": lambda c, model: c.images.generate(model=model, prompt="a cat"),
    "image edits": lambda c, model: c.images.edit(model=model, prompt="a cat", image=("a.png", b"png")),
    "speech": lambda c, model: c.audio.speech.create(model=model, voice="alloy", input="hi").read(),
    "transcriptions": lambda c, model: c.audio.transcriptions.create(model=model, file=("a.mp3", b"mp3")),
    "file list": lambda c, model: c.files.list(purpose="batch").data,
    "file upload": lambda c, model: c.files.create(file=("a.jsonl", b"{}"), purpose="batch"),
    "file content": lambda c, model: c.files.content("file-1").read(),
    "batches": lambda c, model: c.batches.list(limit=3).data,
}


@pytest.mark.parametrize("protocol", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("what", OTHERS)
def test_other_endpoints_of_a_dated_version(cloud: StandIn, serve: Serve, what: str, protocol: str) -> None:
    cloud.answer = lambda sent: as_json({"object": "list", "data": [], "created": 1, "text": "x"})
    sdk = AzureOpenAI(azure_endpoint=cloud.url, api_version=VERSION, api_key="an-azure-key")
    OTHERS[what](sdk, "my-deployment")
    theirs = cloud.only
    place = f'base_url = "{cloud.url}"\napi_version = "{VERSION}"\nprotocol = "{protocol}"'
    with serve(f"[upstreams.azure-deployments]\n{place}") as gateway:
        client = OpenAI(base_url=f"{gateway.url}/v1", api_key="x")
        OTHERS[what](client, "azure-deployments/my-deployment")
    ours = cloud.only
    path, query = urlsplit(ours.path).path, parse_qs(urlsplit(ours.path).query)
    assert (ours.method, path) == (theirs.method, urlsplit(theirs.path).path)
    assert query == parse_qs(urlsplit(theirs.path).query)
    assert without_boundary(ours) == without_boundary(theirs)
    assert ours.headers["api-key"] == theirs.headers["api-key"]


def without_boundary(sent: Sent) -> bytes:
    found = re.search(r"boundary=(\S+)", sent.headers.get("content-type", ""))
    return sent.body.replace(found[1].encode(), b"BOUNDARY") if found else sent.body


def test_version_1(cloud: StandIn, serve: Serve) -> None:
    sdk = OpenAI(base_url=f"{cloud.url}/openai/v1", api_key="theirs")
    sdk.responses.create(model="my-deployment", input="Hello")
    theirs = cloud.only
    with serve(f'[upstreams.azure]\nbase_url = "{cloud.url}"') as gateway:
        client = OpenAI(base_url=f"{gateway.url}/v1", api_key="x")
        client.responses.create(model="azure/my-deployment", input="Hello")
    ours = cloud.only
    assert (ours.method, ours.path, ours.json) == (theirs.method, theirs.path, theirs.json)
    assert ours.headers["api-key"] == "an-azure-key"
    assert "authorization" not in ours.headers


ASKED: dict[str, Any] = {"max_tokens": 50, "messages": SAID}


def test_claude_on_foundry_with_a_key(cloud: StandIn, serve: Serve) -> None:
    sdk = AnthropicFoundry(base_url=f"{cloud.url}/anthropic", api_key="a-foundry-key")
    sdk.messages.create(**ASKED, model="claude-opus-5-1")
    theirs = cloud.only
    with serve(f'[upstreams.foundry]\nbase_url = "{cloud.url}/anthropic"') as gateway:
        client = Anthropic(base_url=gateway.url, api_key="x")
        client.messages.create(**ASKED, model="foundry/claude-opus-5-1")
    ours = cloud.only
    assert (ours.method, ours.path) == (theirs.method, theirs.path)
    assert ours.json == theirs.json | {"cache_control": {"type": "ephemeral"}}
    assert ours.headers["x-api-key"] == theirs.headers["x-api-key"]  # the SDK sends `api-key`, too


@pytest.mark.usefixtures("identity")
@pytest.mark.parametrize(
    ("credential", "resource"),
    [
        ('"entra"', "https://cognitiveservices.azure.com"),
        ('{ entra = "https://ai.azure.com/.default" }', "https://ai.azure.com"),
    ],
)
def test_claude_on_foundry_with_entra_id(
    cloud: StandIn, azure: Azure, serve: Serve, credential: str, resource: str
) -> None:
    sdk = AnthropicFoundry(base_url=f"{cloud.url}/anthropic", azure_ad_token_provider=lambda: "theirs")
    sdk.messages.create(**ASKED, model="claude-opus-5-1")
    theirs = cloud.only
    text = f'[upstreams.foundry]\nbase_url = "{cloud.url}/anthropic"\ncredential = {credential}\n'
    with serve(text) as gateway:
        client = Anthropic(base_url=gateway.url, api_key="x")
        client.messages.create(**ASKED, model="foundry/claude-opus-5-1")
    [ours] = [sent for sent in cloud.sent if not sent.path.startswith("/identity")]
    assert (ours.method, ours.path) == (theirs.method, theirs.path)
    assert theirs.headers["authorization"] == "Bearer theirs"
    assert ours.headers["authorization"] == "Bearer entra-token-1"
    assert not {"x-api-key", "api-key"} & ours.headers.keys()
    assert azure.issued[0].path.endswith(f"resource={resource}")


@pytest.mark.usefixtures("identity")
def test_an_expired_token_is_replaced_in_the_middle_of_a_session(
    cloud: StandIn, azure: Azure, serve: Serve
) -> None:
    text = f'[upstreams.azure]\nbase_url = "{cloud.url}"\ncredential = "entra"'
    with serve(text) as gateway:
        client = OpenAI(base_url=f"{gateway.url}/v1", api_key="x", max_retries=0)
        for _ in range(2):
            client.responses.create(model="azure/my-deployment", input="Hello")
        assert len(azure.issued) == 1
        azure.valid = "another"
        client.responses.create(model="azure/my-deployment", input="Hello")
    assert len(azure.issued) == 2
    assert cloud.sent[-1].headers["authorization"] == "Bearer entra-token-2"
