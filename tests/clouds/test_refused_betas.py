"""Beta features that a cloud refuses: left out at once and from then on, and said on the receipt."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from support import aws
from support.plain_http import Got, call, post
from support.serving import Serve
from support.stand_in import Answer, Sent, StandIn, as_json, standing_in

KEPT, REFUSED, OTHER = (
    "interleaved-thinking-2025-05-14",
    "prompt-caching-scope-2026-01-05",
    "effort-2025-11-24",
)
ASKED = {"max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}


def refusal(message: str) -> Answer:
    error = {"type": "invalid_request_error", "message": message}
    return as_json({"type": "error", "error": error}, 400)


def bedrock(sent: Sent) -> Answer:
    """It does not say which feature it refuses."""
    if "claude-new" in sent.path and sent.json.get("anthropic_beta"):
        return as_json({"message": "invalid beta flag"}, 400)
    return aws.bedrock(sent)


def vertex(sent: Sent) -> Answer:
    betas = [name.strip() for name in sent.headers.get("anthropic-beta", "").split(",")]
    named = [f"`{name}`" for name in betas if name in (REFUSED, OTHER)]
    if named:
        said = "Please consult our documentation at docs.anthropic.com or try again without the header."
        return refusal(f"Unexpected value(s) {', '.join(named)} for the `anthropic-beta` header. {said}")
    return as_json({"input_tokens": 42} if "count-tokens" in sent.path else aws.message())


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAFIRST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", aws.KEYS["AKIAFIRST"])
    with standing_in(bedrock) as place:
        yield place


def config(cloud: StandIn, more: str = "") -> str:
    return f"""
        [upstreams.bedrock]
        region = "us-east-1"
        base_url = "{cloud.url}"
        credential = "aws"
        {more}
        [upstreams.vertex]
        protocol = "anthropic"
        project = "p"
        location = "global"
        base_url = "{cloud.url}"
        credential = "none"
        {more}
    """


def ask(url: str, model: str, betas: str, path: str = "/v1/messages") -> Got:
    return post(url + path, {**ASKED, "model": model}, anthropic_beta=betas)


def listed(cloud: StandIn) -> list[Any]:
    return [sent.json.get("anthropic_beta") for sent in cloud.sent]


def test_bedrock(cloud: StandIn, serve: Serve) -> None:
    with serve(config(cloud)) as gateway:
        got = ask(gateway.url, "bedrock/anthropic.claude-new", f"{KEPT},{REFUSED}")
        assert got.status == 200
        assert got.headers["x-dragoman-warnings"] == "betas-dropped anthropic-beta"
        receipt = call(f"{gateway.url}/exchanges/{got.headers['x-dragoman-exchange']}").json
        [notice] = [one for one in receipt["notices"] if one["rule"] == "betas-dropped"]
        assert f"{KEPT}, {REFUSED}" in json.dumps(notice)
        assert ask(gateway.url, "bedrock/anthropic.claude-new", KEPT).status == 200
        assert listed(cloud) == [[KEPT, REFUSED], None, None]
        # Another model keeps them.
        got = ask(gateway.url, "bedrock/anthropic.claude-old", KEPT)
        assert (got.status, "x-dragoman-warnings" in got.headers) == (200, False)
        assert listed(cloud)[-1] == [KEPT]


def test_a_client_in_its_bedrock_mode(cloud: StandIn, serve: Serve) -> None:
    """Its features are in the body."""
    with serve(config(cloud) + '[[routes]]\nmatch = "*"\nto = "bedrock/*"') as gateway:
        path = "/model/anthropic.claude-new/invoke"
        assert post(gateway.url + path, {**ASKED, "anthropic_beta": [REFUSED]}).status == 200
    assert listed(cloud) == [[REFUSED], None]


def test_vertex_names_what_it_refuses(cloud: StandIn, serve: Serve) -> None:
    cloud.answer = vertex
    with serve(config(cloud)) as gateway:
        assert ask(gateway.url, "vertex/claude-new", f"{KEPT},{REFUSED}").status == 200
        assert ask(gateway.url, "vertex/claude-new", f"{OTHER}, {KEPT}, {REFUSED}").status == 200
        counting = "/v1/messages/count_tokens"
        assert ask(gateway.url, "vertex/claude-new", f"{KEPT},{REFUSED}", counting).json == {
            "input_tokens": 42
        }
    sent = [one.headers.get("anthropic-beta") for one in cloud.sent]
    assert sent == [f"{KEPT},{REFUSED}", KEPT, f"{OTHER},{KEPT}", KEPT, KEPT]


def test_a_strict_upstream_drops_nothing(cloud: StandIn, serve: Serve) -> None:
    with serve(config(cloud, "strict = true")) as gateway:
        got = ask(gateway.url, "bedrock/anthropic.claude-new", REFUSED)
    assert (got.status, len(cloud.sent)) == (400, 1)
    assert "invalid beta flag" in got.json["error"]["message"]


def test_a_refusal_that_does_not_end_is_not_repeated_forever(cloud: StandIn, serve: Serve) -> None:
    cloud.answer = lambda sent: as_json({"message": "invalid beta flag"}, 400)
    with serve(config(cloud)) as gateway:
        for betas in (REFUSED, "", KEPT):
            assert ask(gateway.url, "bedrock/anthropic.claude-new", betas).status == 400
    assert len(cloud.sent) == 4
    assert not re.search(REFUSED, json.dumps([sent.json for sent in cloud.sent[1:]]))
