"""Vertex AI: Dragoman sends what Google's and Anthropic's SDKs send, with Google's own credentials."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from anthropic import Anthropic, AnthropicVertex, APIStatusError
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google import genai
from google.genai import types
from google.oauth2.credentials import Credentials
from openai import OpenAI, providers
from support import aws
from support.plain_http import post
from support.serving import Serve
from support.stand_in import Answer, Sent, StandIn, as_json, events, standing_in
from test_azure import RESPONSE

from dragoman.config import ConfigError, loads

PLACE = 'project = "my-project"\nlocation = "us-east5"\n'
TOKENS = "/token", "/computeMetadata/v1/instance/service-accounts/default/token"
GEMINI = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "Hello."}]}, "finishReason": "STOP", "index": 0}
    ],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5},
    "modelVersion": "gemini-2.5-pro",
}
CHAT = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "google/gemini-2.5-pro",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
}
ASKED: dict[str, Any] = {
    "max_tokens": 500,
    "system": "Be brief.",
    "messages": [{"role": "user", "content": "Hello"}],
    "tools": [{"name": "now", "input_schema": {"type": "object", "properties": {}}}],
}


class Google:
    """Google's token endpoints and Vertex AI, in one place."""

    def __init__(self) -> None:
        self.issued = 0
        self.valid = ""
        self.tokens: list[Sent] = []

    def __call__(self, sent: Sent) -> Answer:
        if sent.path.partition("?")[0] in TOKENS:
            self.issued += 1
            self.valid = f"ya29.token-{self.issued}"
            self.tokens.append(sent)
            token = {"access_token": self.valid, "expires_in": 3600, "token_type": "Bearer"}
            return as_json(token, **{"Metadata-Flavor": "Google"})
        if "/service-accounts/" in sent.path:
            account = {"email": "me@my-project.iam.gserviceaccount.com", "aliases": ["default"], "scopes": []}
            return as_json(account, **{"Metadata-Flavor": "Google"})
        if "/computeMetadata/" in sent.path or sent.path == "/":
            return Answer(b"default", "text/plain", headers={"Metadata-Flavor": "Google"})
        if sent.headers.get("authorization") not in (f"Bearer {self.valid}", "Bearer ya29.theirs"):
            return as_json({"error": {"code": 401, "message": "expired", "status": "UNAUTHENTICATED"}}, 401)
        return self.answer(sent)

    def answer(self, sent: Sent) -> Answer:
        if "count-tokens" in sent.path:
            return as_json({"input_tokens": 42})
        if sent.path.endswith(":countTokens"):
            return as_json({"totalTokens": 43})
        if ":streamRawPredict" in sent.path:
            return events(
                *((str(event["type"]), event) for event in aws.CLAUDE[:-1]), ("message_stop", aws.CLAUDE[-1])
            )
        if ":rawPredict" in sent.path:
            return as_json(aws.message())
        if ":streamGenerateContent" in sent.path:
            return Answer(f"data: {json.dumps(GEMINI)}\r\n\r\n".encode(), "text/event-stream")
        return as_json(CHAT if "/chat/" in sent.path else GEMINI)


@pytest.fixture
def google() -> Google:
    return Google()


@pytest.fixture
def cloud(google: Google, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[StandIn]:
    with standing_in(google) as place:
        file = tmp_path / "account.json"
        file.write_text(json.dumps(service_account(place.url)))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        yield place


KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
)


def service_account(url: str) -> dict[str, str]:
    return {
        "type": "service_account",
        "project_id": "my-project",
        "private_key_id": "1",
        "private_key": KEY.decode(),
        "client_email": "me@my-project.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": f"{url}/token",
    }


def config(cloud: StandIn, more: str = "") -> str:
    # No account's credentials go to an address that is not Google's unless the config says so.
    credential = "" if "credential" in more else 'credential = "google"\n'
    return f'[upstreams.vertex]\n{PLACE}base_url = "{cloud.url}"\n{credential}{more}'


def to_vertex(cloud: StandIn) -> Sent:
    """The one request that was not for a token."""
    [sent] = [sent for sent in cloud.sent if sent.path not in TOKENS]
    cloud.sent.clear()
    return sent


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["claude-sonnet-4-5@20250929", "claude-opus-4-1"])
def test_claude_is_asked_as_its_sdk_asks(cloud: StandIn, serve: Serve, model: str, stream: bool) -> None:
    sdk = AnthropicVertex(
        base_url=f"{cloud.url}/v1", region="us-east5", project_id="my-project", access_token="ya29.theirs"
    )
    asked = {**ASKED, "model": model, "betas": ["context-1m-2025-08-07"]}
    answer: Any = sdk.beta.messages.create(**asked, stream=stream)
    for _ in answer if stream else ():
        pass
    theirs = to_vertex(cloud)
    with serve(config(cloud, 'protocol = "anthropic"\nanthropic_version = "2026-10-21"')) as gateway:
        client = Anthropic(base_url=gateway.url, api_key="x", max_retries=0)
        answer = client.beta.messages.create(**asked | {"model": f"vertex/{model}"}, stream=stream)
        for _ in answer if stream else ():
            pass
    ours = to_vertex(cloud)
    assert (ours.method, ours.path, ours.json) == (theirs.method, theirs.path, theirs.json)
    for name in ("content-type", "anthropic-beta"):
        assert ours.headers[name] == theirs.headers[name]
    assert ours.headers["authorization"] == "Bearer ya29.token-1"
    assert not {"x-api-key", "anthropic-version"} & ours.headers.keys()


def test_claude_has_the_version_of_vertex_and_counts_tokens(cloud: StandIn, serve: Serve) -> None:
    sdk = AnthropicVertex(
        base_url=f"{cloud.url}/v1", region="us-east5", project_id="my-project", access_token="ya29.theirs"
    )
    asked = {key: value for key, value in ASKED.items() if key != "max_tokens"} | {"model": "claude-opus-4-1"}
    sdk.messages.count_tokens(**asked)
    theirs = to_vertex(cloud)
    with serve(config(cloud, 'protocol = "anthropic"')) as gateway:
        client = Anthropic(base_url=gateway.url, api_key="x", max_retries=0)
        assert client.messages.count_tokens(**asked | {"model": "vertex/claude-opus-4-1"}).input_tokens == 42
    ours = to_vertex(cloud)
    assert ours.path == theirs.path
    assert ours.json == theirs.json | {"anthropic_version": "vertex-2023-10-16"}


@pytest.mark.parametrize("stream", [False, True])
def test_gemini_is_asked_as_its_sdk_asks(cloud: StandIn, serve: Serve, stream: bool) -> None:
    options = types.HttpOptions(base_url=cloud.url)
    vertex = genai.Client(
        vertexai=True,
        project="my-project",
        location="us-east5",
        credentials=Credentials("ya29.theirs"),
        http_options=options,
    )
    settings = types.GenerateContentConfig(system_instruction="Be brief.", max_output_tokens=500)

    def ask(client: genai.Client, model: str) -> str | None:
        if stream:
            return "".join(
                part.text or ""
                for part in client.models.generate_content_stream(
                    model=model, contents="Hello", config=settings
                )
            )
        return client.models.generate_content(model=model, contents="Hello", config=settings).text

    assert ask(vertex, "gemini-2.5-pro") == "Hello."
    theirs = to_vertex(cloud)
    with serve(config(cloud)) as gateway:
        client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=gateway.url))
        assert ask(client, "vertex/gemini-2.5-pro") == "Hello."
    ours = to_vertex(cloud)
    assert (ours.method, ours.path, ours.json) == (theirs.method, theirs.path, theirs.json)
    assert ours.headers["authorization"] == "Bearer ya29.token-1"
    assert "x-goog-api-key" not in ours.headers


def test_gemini_counts_tokens_as_its_sdk_does(cloud: StandIn, serve: Serve) -> None:
    with serve(config(cloud)) as gateway:
        body = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}], "safetySettings": []}
        path = "/v1beta/models/vertex/gemini-2.5-pro:countTokens"
        got = post(gateway.url + path, {"generateContentRequest": {"model": "models/x", **body}})
    assert got.json == {"totalTokens": 43}
    ours = to_vertex(cloud)
    assert ours.path.endswith("/locations/us-east5/publishers/google/models/gemini-2.5-pro:countTokens")
    assert ours.json == {"contents": body["contents"]}


def test_the_openai_compatible_endpoint(cloud: StandIn, serve: Serve) -> None:
    with serve(config(cloud, 'protocol = "openai-chat"')) as gateway:
        client = OpenAI(base_url=f"{gateway.url}/v1", api_key="x")
        answer = client.chat.completions.create(
            model="vertex/google/gemini-2.5-pro", messages=[{"role": "user", "content": "Hello"}]
        )
    assert answer.choices[0].message.content == "Hello."
    ours = to_vertex(cloud)
    assert ours.path == "/v1/projects/my-project/locations/us-east5/endpoints/openapi/chat/completions"
    assert ours.json["model"] == "google/gemini-2.5-pro"


def test_openais_own_models_are_asked_as_its_sdk_asks(cloud: StandIn, google: Google, serve: Serve) -> None:
    google.answer = lambda sent: as_json(RESPONSE)
    root = "/v1/projects/my-project/locations/us-east5/publishers/openai/v1"
    usual = providers.vertex(project="my-project", location="us-east5", token_provider=lambda: "x")
    assert str(OpenAI(provider=usual).base_url).rstrip("/") == f"{HOSTS['us-east5']}{root}"
    place = providers.vertex(base_url=cloud.url + root, token_provider=lambda: "ya29.theirs")
    OpenAI(provider=place, max_retries=0).responses.create(model="gpt-5.6", input="Hello")
    theirs = to_vertex(cloud)
    with serve(config(cloud, 'protocol = "openai-responses"')) as gateway:
        client = OpenAI(base_url=f"{gateway.url}/v1", api_key="x")
        client.responses.create(model="vertex/gpt-5.6", input="Hello")
    ours = to_vertex(cloud)
    assert (ours.method, ours.path, ours.json) == (theirs.method, theirs.path, theirs.json)
    assert ours.headers["authorization"] == "Bearer ya29.token-1"


def test_other_endpoints_are_not_passed_to_vertex(cloud: StandIn, serve: Serve) -> None:
    asked = {"content": {"parts": [{"text": "hi"}]}}
    with serve(config(cloud)) as gateway:
        got = post(f"{gateway.url}/v1beta/models/vertex/gemini-embedding-001:embedContent", asked)
    assert (got.status, cloud.sent) == (404, [])
    assert "goes to vertex, which does not have it (Dragoman asks this cloud for answers only)" in str(
        got.json
    )


HOSTS = {
    "global": "https://aiplatform.googleapis.com",
    "us": "https://aiplatform.us.rep.googleapis.com",
    "eu": "https://aiplatform.eu.rep.googleapis.com",
    "us-east5": "https://us-east5-aiplatform.googleapis.com",
}


@pytest.mark.parametrize("location", HOSTS)
def test_each_location_has_the_host_that_both_sdks_use(location: str) -> None:
    sdk = AnthropicVertex(region=location, project_id="p", access_token="x")
    assert str(sdk.base_url).startswith(HOSTS[location])
    google = genai.Client(vertexai=True, project="p", location=location, credentials=Credentials("x"))
    assert str(google._api_client._http_options.base_url).rstrip("/") == HOSTS[location]
    for protocol in ("gemini", "anthropic", "openai-chat"):
        text = f'[upstreams.vertex]\nproject = "p"\nlocation = "{location}"\nprotocol = "{protocol}"'
        assert loads(text).upstreams["vertex"].base_url == HOSTS[location]


@pytest.mark.parametrize(
    ("given", "missing"), [('location = "global"', "project"), ('project = "p"', "location")]
)
def test_a_missing_setting_is_reported(given: str, missing: str) -> None:
    with pytest.raises(ConfigError, match=rf"\[upstreams.vertex\] has no {missing}: set {missing}"):
        loads(f"[upstreams.vertex]\n{given}")


@pytest.mark.parametrize("bad", ["a/b", "a b", "", "a?b", "../x", "{model}"])
def test_a_place_is_a_name(bad: str) -> None:
    with pytest.raises(ConfigError, match="project in"):
        loads(f'[upstreams.vertex]\nproject = "{bad}"\nlocation = "global"')


# Credentials


def kept(text: str) -> tuple[str, str]:
    """The credential of the one upstream, and the one that is withheld."""
    [upstream] = loads(text).upstreams.values()
    return upstream.credential.description, upstream.withheld


@pytest.mark.parametrize(
    ("host", "sent"),
    [
        ("https://aiplatform.googleapis.com", True),
        ("https://aiplatform-psc.p.googleapis.com", True),
        ("https://aiplatform.googleapis.com.example.com", False),
        ("https://evilgoogleapis.com", False),
        ("http://aiplatform.googleapis.com", False),
        ("http://127.0.0.1:9", False),
    ],
)
def test_googles_token_goes_to_google_only(host: str, sent: bool) -> None:
    text = f'[upstreams.vertex]\n{PLACE}base_url = "{host}"\n'
    assert kept(text) == (("google", "") if sent else ("none", "google"))
    assert kept(f'{text}credential = "google"') == ("google", "")


@pytest.mark.parametrize(
    ("host", "sent"),
    [
        ("https://vpce-1-a.bedrock-runtime.us-east-1.vpce.amazonaws.com", True),
        ("https://bedrock-runtime.cn-north-1.amazonaws.com.cn", True),
        ("https://bedrock-mantle.us-east-1.api.aws", True),
        ("https://amazonaws.com.example.com", False),
        ("https://evilamazonaws.com", False),
        ("http://127.0.0.1:9", False),
    ],
)
@pytest.mark.parametrize(
    ("provider", "own"), [("bedrock", "aws"), ("bedrock-mantle", "env:AWS_BEARER_TOKEN_BEDROCK")]
)
def test_aws_keys_go_to_aws_only(provider: str, own: str, host: str, sent: bool) -> None:
    text = f'[upstreams.{provider}]\nregion = "us-east-1"\nbase_url = "{host}"\n'
    assert kept(text) == ((own, "") if sent else ("none", own))


def ask(url: str) -> None:
    Anthropic(base_url=url, api_key="x", max_retries=0).messages.create(
        **ASKED, model="vertex/claude-opus-4-1"
    )


CLAUDE = 'protocol = "anthropic"\n'


def test_a_token_is_used_until_it_is_refused(cloud: StandIn, google: Google, serve: Serve) -> None:
    """An expired token in the middle of a session: the client notices nothing."""
    with serve(config(cloud, CLAUDE)) as gateway:
        ask(gateway.url)
        ask(gateway.url)
        assert google.issued == 1
        google.valid = ""
        ask(gateway.url)
    assert google.issued == 2


def test_another_file_is_used_with_the_next_request(
    cloud: StandIn, google: Google, serve: Serve, tmp_path: Path
) -> None:
    with serve(config(cloud, CLAUDE)) as gateway:
        ask(gateway.url)
        other = service_account(cloud.url) | {"client_email": "other@my-project.iam.gserviceaccount.com"}
        (tmp_path / "account.json").write_text(json.dumps(other))
        ask(gateway.url)
    assert google.issued == 2


def test_a_users_login_with_a_quota_project(
    cloud: StandIn, google: Google, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = {"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r"}
    file = tmp_path / "login.json"
    file.write_text(json.dumps(login | {"quota_project_id": "billed"}))
    monkeypatch.setattr("google.oauth2.credentials._GOOGLE_OAUTH2_TOKEN_ENDPOINT", f"{cloud.url}/token")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    with serve(config(cloud, f'{CLAUDE}credential = {{ google = "{file}" }}')) as gateway:
        ask(gateway.url)
    assert google.tokens[0].body.decode().count("refresh_token") == 2
    assert to_vertex(cloud).headers["x-goog-user-project"] == "billed"


def test_the_metadata_server(
    cloud: StandIn, google: Google, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = cloud.url.removeprefix("http://")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "my-project")
    for name in ("GCE_METADATA_HOST", "GCE_METADATA_IP"):
        monkeypatch.setenv(name, host)
    with serve(config(cloud, CLAUDE)) as gateway:
        ask(gateway.url)
    assert google.tokens[0].headers["metadata-flavor"] == "Google"


def test_no_credentials_at_all(cloud: StandIn, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    with (
        serve(config(cloud, CLAUDE)) as gateway,
        pytest.raises(APIStatusError, match="Google gives no token: Your default credentials were not found"),
    ):
        ask(gateway.url)


def test_a_workload_identity(
    cloud: StandIn, google: Google, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job outside of Google: its own token is in a file, and Google's token service changes it."""
    # google-auth asks there which project the number is.
    manager = "google.auth.external_account._CLOUD_RESOURCE_MANAGER"
    monkeypatch.setattr(manager, f"{cloud.url}/v1/projects/")
    (tmp_path / "subject").write_text("a-jobs-token")
    audience = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/jobs"
    file = tmp_path / "workload.json"
    file.write_text(
        json.dumps(
            {
                "type": "external_account",
                "audience": audience,
                "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
                "token_url": f"{cloud.url}/token",
                "credential_source": {"file": str(tmp_path / "subject")},
            }
        )
    )
    with serve(config(cloud, f'{CLAUDE}credential = {{ google = "{file}" }}')) as gateway:
        ask(gateway.url)
        google.valid = ""  # the token is refused in the middle of the session
        ask(gateway.url)
    asked = [parse_qs(sent.body.decode()) for sent in google.tokens]
    assert [one["subject_token"] for one in asked] == [["a-jobs-token"]] * 2
    assert asked[0]["audience"] == [audience]
