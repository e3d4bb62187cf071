"""The other endpoints and the keys of their upstream: several keys, used-up quotas, other targets."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.gateways import Gateway, Loop, gateway
from support.plain_http import Got, call
from support.stand_in import Answer, Sent, StandIn, as_json, standing_in

ENV = {"A": "sk-first-key-1", "B": "sk-second-key-2", "C": "sk-third-key-3"}
QUOTA = {"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}
NO = {"error": {"message": "no"}}
EMBEDDED: dict[str, Any] = {"object": "list", "data": [], "usage": {"prompt_tokens": 7, "total_tokens": 7}}


@pytest.fixture
def loop() -> Iterator[Loop]:
    running = Loop()
    yield running
    running.close()


@pytest.fixture
def provider() -> Iterator[StandIn]:
    with standing_in(lambda sent: as_json(EMBEDDED)) as place:
        yield place


def toml(provider: StandIn, credentials: str = '["env:A", "env:B"]') -> str:
    which = "credentials" if credentials.startswith("[") else "credential"
    return f"""
        [upstreams.up]
        protocol = "openai-chat"
        base_url = "{provider.url}/v1"
        {which} = {credentials}
        other_endpoints = ["files"]
        [upstreams.spare]
        protocol = "openai-chat"
        base_url = "{provider.url}/v1"
        credential = "env:C"
        [[routes]]
        match = "both"
        to = ["up/e", "spare/e"]
        [[routes]]
        match = "*"
        to = "up/e"
    """


@pytest.fixture
def through(loop: Loop, provider: StandIn) -> Iterator[Gateway]:
    with gateway(toml(provider), loop, env=ENV) as running:
        yield running


def embed(through: Gateway, model: str = "e") -> Got:
    return call(f"{through.url}/v1/embeddings", "POST", {"model": model, "input": "hi"})


def used(provider: StandIn) -> list[str]:
    return [sent.headers["authorization"].removeprefix("Bearer ") for sent in provider.sent]


def refusing(*keys: str, status: int = 429, body: Any = QUOTA) -> Callable[[Sent], Answer]:
    def answer(sent: Sent) -> Answer:
        if sent.headers["authorization"].removeprefix("Bearer ") in keys:
            return as_json(body, status)
        return as_json(EMBEDDED)

    return answer


def test_requests_take_turns_among_the_keys(provider: StandIn, through: Gateway) -> None:
    numbers = iter(n / 16 for n in range(16))
    through.state.upstreams.random = lambda: next(numbers)
    for _ in range(16):
        assert embed(through).status == 200
    assert set(used(provider)) == {ENV["A"], ENV["B"]}


@pytest.mark.parametrize("status", [429, 401, 403, 402])
def test_the_next_key_follows_a_refused_one(provider: StandIn, through: Gateway, status: int) -> None:
    provider.answer = refusing(ENV["A"], status=status, body=QUOTA if status == 429 else NO)
    for _ in range(12):
        assert embed(through).status == 200
    assert used(provider).count(ENV["A"]) <= 3  # it cools down, at the latest after three failures
    assert used(provider).count(ENV["B"]) == 12


def test_the_next_target_follows_the_last_key(provider: StandIn, through: Gateway) -> None:
    provider.answer = refusing(ENV["A"], ENV["B"])
    got = embed(through, "both")
    assert got.status == 200
    assert sorted(used(provider)) == sorted(ENV.values())
    receipt = call(f"{through.url}/exchanges/{got.headers['x-dragoman-exchange']}").json
    assert [attempt["outcome"] for attempt in receipt["attempts"]] == ["rate_limit", "rate_limit", "ok"]
    assert len({attempt["key"] for attempt in receipt["attempts"]}) == 3
    assert not any(key in json.dumps(receipt) for key in ENV.values())


@pytest.mark.parametrize("status", [401, 403, 404])
def test_the_next_target_follows_one_that_cannot_do_it(
    provider: StandIn, through: Gateway, status: int
) -> None:
    provider.answer = refusing(ENV["A"], ENV["B"], status=status, body=NO)
    assert embed(through, "both").status == 200
    assert used(provider)[-1] == ENV["C"]


def test_a_wrong_request_is_wrong_everywhere(provider: StandIn, through: Gateway) -> None:
    provider.answer = lambda sent: as_json({"error": {"message": "input is missing"}}, 400)
    assert embed(through, "both").status == 400
    assert len(provider.sent) == 1


def test_all_keys_used_up_is_the_upstreams_error(provider: StandIn, through: Gateway) -> None:
    provider.answer = refusing(*ENV.values())
    got = embed(through)
    assert (got.status, got.json) == (429, QUOTA)
    assert sorted(used(provider)) == [ENV["A"], ENV["B"]]


def test_files_stay_in_one_account(provider: StandIn, through: Gateway) -> None:
    """A file that one key uploaded may not exist for another one."""
    through.state.upstreams.random = iter([0.1, 0.9, 0.3, 0.7] * 4).__next__
    for method, path in [("GET", "/v1/files"), ("DELETE", "/v1/files/f"), ("GET", "/v1/files/f/content")] * 3:
        assert call(through.url + path, method).status == 200
    assert set(used(provider)) == {ENV["A"]}
    provider.answer = refusing(ENV["A"])
    assert call(f"{through.url}/v1/files").status == 429


def test_a_refused_upload_makes_the_next_one_read_the_key_again(
    loop: Loop, provider: StandIn, tmp_path: Path
) -> None:
    """The body of an upload is gone when the refusal arrives, so it is not sent again."""
    count = tmp_path / "count"
    program = tmp_path / "token.sh"
    program.write_text(f"#!/bin/sh\necho x >> {count}\necho token-$(wc -l < {count} | tr -d ' ')\n")
    program.chmod(0o755)
    provider.answer = refusing("token-1", status=401, body=NO)
    credential = f'{{ command = ["{program}"] }}'
    with gateway(toml(provider, credential), loop, env={**ENV, "PATH": "/usr/bin:/bin"}) as through:
        for status in (401, 200):
            got = httpx2.post(f"{through.url}/v1/files", files={"file": ("a", b"x")})
            assert got.status_code == status
    assert used(provider) == ["token-1", "token-2"]
