"""Every config on the pages about clouds, run against a local server: what is asked, and by whom."""

import asyncio
import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support import aws
from support.manual import Block, blocks
from support.plain_http import post
from support.serving import Serve
from support.stand_in import Answer, Sent, StandIn, as_json, standing_in
from test_azure import RESPONSE
from test_vertex import CHAT, GEMINI, service_account

from dragoman.cli.check.probe import check
from dragoman.config import loads

MANTLE, RUNTIME = (
    "https://bedrock-mantle.us-east-1.api.aws",
    "https://bedrock-runtime.us-east-1.amazonaws.com",
)
GLOBAL = "https://aiplatform.googleapis.com"
AZURE, FOUNDRY = "https://RESOURCE.openai.azure.com", "https://RESOURCE.services.ai.azure.com"
CENTRAL, EAST = (f"https://{region}-aiplatform.googleapis.com" for region in ("us-central1", "us-east5"))
GEMINI_AT, GOOGLE = "/v1beta1/projects/my-project/locations", "publishers/google/models"
CLAUDE_AT = "/v1/projects/my-project/locations/global/publishers/anthropic/models"
DEPLOYMENT = "/openai/deployments/my-deployment"
GOOGLES = "Bearer ya29.t"
Case = tuple[str, str, str]
EXPECTED: dict[str, list[list[Case]]] = {
    # By page and block: the model a client asks for, where the request goes, and what authenticates it.
    "bedrock": [
        [("claude-sonnet-5", f"{RUNTIME}/model/us.anthropic.claude-sonnet-5-v1:0/invoke", "signed")],
        [("gpt-5", f"{RUNTIME}/model/us.amazon.nova-pro-v1%3A0/converse", "signed")],
        [("bedrock/m", f"{RUNTIME}/model/m/invoke", "signed by work")],
        [("bedrock/m", f"{RUNTIME}/model/m/invoke", "Bearer a-bedrock-key")],
        [
            ("bedrock-mantle/m", f"{MANTLE}/anthropic/v1/messages", "Bearer a-bedrock-key"),
            ("bedrock-openai/m", f"{RUNTIME}/openai/v1/chat/completions", "Bearer a-bedrock-key"),
        ],
    ],
    "vertex": [
        [
            (
                "gemini-2.5-pro",
                f"{GLOBAL}{GEMINI_AT}/global/{GOOGLE}/gemini-2.5-pro:generateContent",
                GOOGLES,
            ),
            ("claude-opus-5", f"{GLOBAL}{CLAUDE_AT}/claude-opus-5:rawPredict", GOOGLES),
        ],
        [("vertex/m", f"{CENTRAL}{GEMINI_AT}/us-central1/{GOOGLE}/m:generateContent", GOOGLES)],
        [("vertex/m", f"{GLOBAL}{GEMINI_AT}/global/{GOOGLE}/m:generateContent", "Bearer printed")],
        [
            (
                "x",
                f"{EAST}/v1/projects/my-project/locations/us-east5/endpoints/openapi/chat/completions",
                GOOGLES,
            )
        ],
    ],
    "azure": [
        [("gpt-5", f"{AZURE}/openai/v1/responses", "api-key an-azure-key")],
        [("claude-opus-5", f"{FOUNDRY}/anthropic/v1/messages", "x-api-key a-foundry-key")],
        [("gpt-5", f"{AZURE}{DEPLOYMENT}/chat/completions?api-version=2024-10-21", "api-key an-azure-key")],
        [
            ("azure/m", f"{AZURE}/openai/v1/responses", "Bearer entra-token"),
            ("foundry/m", f"{FOUNDRY}/anthropic/v1/messages", "Bearer entra-token"),
        ],
    ],
}


def cases() -> Iterator[Any]:
    for page, expected in EXPECTED.items():
        found = [block for block in blocks("toml") if block.page == f"docs/how-to/upstreams/{page}.md"]
        for block, asked in zip(found, expected, strict=True):
            for case in asked:
                yield pytest.param(block, *case, id=f"{page}:{block.line} {case[0]}")


def models(sent: Sent) -> Answer:
    """Answers of all kinds of models, and the endpoints of the clouds that give tokens."""
    if sent.path == "/token":
        return as_json({"access_token": "ya29.t", "expires_in": 3600, "token_type": "Bearer"})
    if sent.path.startswith("/identity"):
        return as_json({"access_token": "entra-token", "expires_on": "4102444800", "token_type": "Bearer"})
    if sent.method == "GET":
        return as_json({"error": {"message": "no such path"}}, 404)
    if sent.path.startswith("/model/"):
        return aws.bedrock(sent)
    if sent.path.endswith(("/messages", ":rawPredict")):
        return as_json(aws.message())
    if sent.path.endswith(":generateContent"):
        return as_json(GEMINI)
    return as_json(RESPONSE if sent.path.endswith("/responses") else CHAT)


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """A machine whose user has an account at each of the three."""
    with standing_in(models) as place:
        (tmp_path / ".aws").mkdir()
        profiles = {"default": "AKIAFIRST", "work": "AKIASECOND"}
        (tmp_path / ".aws" / "credentials").write_text(
            "".join(
                f"[{name}]\naws_access_key_id = {key}\naws_secret_access_key = {aws.KEYS[key]}\n"
                for name, key in profiles.items()
            )
        )
        account = tmp_path / "keys" / "service-account.json"
        account.parent.mkdir()
        account.write_text(json.dumps(service_account(place.url)))
        program = tmp_path / "bin" / "gcloud"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho printed\n")
        program.chmod(0o755)
        for name, value in {
            "PATH": f"{program.parent}:/usr/bin:/bin",
            "GOOGLE_APPLICATION_CREDENTIALS": str(account),
            "IDENTITY_ENDPOINT": f"{place.url}/identity",
            "IDENTITY_HEADER": "x",
            "AWS_BEARER_TOKEN_BEDROCK": "a-bedrock-key",
            "AZURE_OPENAI_API_KEY": "an-azure-key",
            "ANTHROPIC_FOUNDRY_API_KEY": "a-foundry-key",
        }.items():
            monkeypatch.setenv(name, value)
        yield place


def at(cloud: StandIn, block: Block) -> str:
    """The block's config, with the local server in the place of each upstream's host."""
    document = tomllib.loads(block.code)
    known = loads(block.code, shown=str(block), env={})
    for name, table in document["upstreams"].items():
        parts = urlsplit(known.upstreams[name].base_url)
        table["base_url"] = cloud.url + parts.path
        # It is not the provider's own address, so it gets only a credential that the config names.
        table.setdefault("credential", known.upstreams[name].credential.description)
    return "".join(
        _table(f"[upstreams.{name}]", table) for name, table in document["upstreams"].items()
    ) + "".join(_table("[[routes]]", route) for route in document.get("routes", []))


def _table(head: str, table: dict[str, Any]) -> str:
    lines = (f"{key} = {_value(value)}" for key, value in table.items())
    return "\n".join([head, *lines, ""])


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_value(inner)}' for key, inner in value.items())} }}"
    return json.dumps(value)


def authenticated(sent: Sent, cloud: StandIn) -> str:
    if sent.headers.get("authorization", "").startswith("AWS4"):
        return {"AKIAFIRST": "signed", "AKIASECOND": "signed by work"}[aws.signer(sent, cloud.url)]
    for name in ("api-key", "x-api-key", "x-goog-api-key"):
        if name in sent.headers:
            return f"{name} {sent.headers[name]}"
    return sent.headers["authorization"]


@pytest.mark.parametrize(("block", "model", "url", "how"), [*cases()])
def test_a_config_of_the_manual(
    cloud: StandIn, serve: Serve, block: Block, model: str, url: str, how: str
) -> None:
    asked = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
    known = loads(block.code, shown=str(block), env={})
    with serve(at(cloud, block)) as gateway:
        got = post(f"{gateway.url}/v1/messages", asked)
    assert got.status == 200, got.body
    [sent] = [sent for sent in cloud.sent if not sent.path.startswith(("/token", "/identity"))]
    hosts = {urlsplit(upstream.base_url).netloc for upstream in known.upstreams.values()}
    assert urlsplit(url).netloc in hosts
    assert sent.path == url.partition("://")[2].removeprefix(urlsplit(url).netloc)
    assert authenticated(sent, cloud) == how


BLOCKS = [
    pytest.param(block, id=f"{page}:{block.line}")
    for page in EXPECTED
    for block in blocks("toml")
    if block.page == f"docs/how-to/upstreams/{page}.md"
]


@pytest.mark.parametrize("block", BLOCKS)
def test_the_check_of_a_config_of_the_manual(cloud: StandIn, block: Block) -> None:
    """`dragoman check` finds the credentials. The pages say that a cloud without a list answers 404."""
    config = loads(at(cloud, block), env=dict(os.environ))
    findings = asyncio.run(check(config, os.environ, 20))
    assert [(one.name, one.ok) for one in findings] == [(name, True) for name in config.upstreams]
    assert all("answers (404)" in one.message for one in findings)
    asked = [sent for sent in cloud.sent if not sent.path.startswith(("/token", "/identity"))]
    assert len(asked) == len(findings)
    assert all(authenticated(sent, cloud) for sent in asked)
