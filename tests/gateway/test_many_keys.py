"""Several keys for one upstream: shared by conversations, exchanged after a refusal, named on the receipt."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gateway_harness import Gateway, Got, ask, running, send
from support.scripted_talk import question
from support.scripted_upstream import Reply, ScriptedUpstream, in_background, status
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES

from dragoman.cli.check.probe import check
from dragoman.cli.serve.service import missing_credentials
from dragoman.config import loads
from dragoman.credentials.secret import Secret
from dragoman.gateway.state import watch_config
from dragoman.model.messages import Message, Text
from dragoman.routing.health import Cooldown

ENV = {"A": "sk-first-key-1", "B": "sk-second-key-2", "C": "sk-third-key-3"}
KEYS = set(ENV.values())
BOTH = '["env:A", "env:B"]'


def openai_error(message: str, code: str = "", kind: str = "") -> bytes:
    return json.dumps(
        {"error": {"message": message, "type": kind or code or None, "code": code or None}}
    ).encode()


def google_error(quota: str, delay: str = "") -> bytes:
    """What the Gemini API answers for a limit per day, and for one per minute: only the id differs."""
    details: list[dict[str, Any]] = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]}
    ]
    if delay:
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    message = "You exceeded your current quota, please check your plan and billing details."
    error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}
    return json.dumps({"error": error}).encode()


QUOTA = openai_error("You exceeded your current quota.", "insufficient_quota")
USED_UP = {
    "openai": QUOTA,
    "gemini per day": google_error("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "31s"),
    "groq per day": openai_error("Rate limit reached on tokens per day (TPD): Limit 100000, Used 99999"),
    "openrouter": openai_error("Rate limit exceeded: free-models-per-day. Add 10 credits"),
    "moonshot": openai_error("Your account is suspended", kind="exceeded_current_quota_error"),
    "chatgpt": openai_error("The usage limit has been reached", kind="usage_limit_reached"),
    "a proxy": b"Monthly spending limit reached",
}
PASSING = {
    "openai per minute": openai_error("Rate limit reached on tokens per min (TPM)", "rate_limit_exceeded"),
    "a link to the bill": openai_error("Slow down. Pay for more at https://example.com/account/billing."),
    "anthropic": openai_error(
        "This would exceed your rate limit of 50 requests per minute", "rate_limit_error"
    ),
    "gemini per minute": google_error("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"),
    "vertex": openai_error("Quota exceeded for generate_content_requests_per_minute_per_project"),
    "azure": openai_error("exceeded token rate limit of your tier, see https://aka.ms/oai/quotaincrease"),
    "no reason": b"{}",
}


def toml(
    url: str,
    credentials: str = BOTH,
    *,
    protocol: str = CHAT,
    retries: int = 2,
    more: str = "",
    base: str = "",
) -> str:
    which = "credentials" if credentials.startswith("[") else "credential"
    return (
        f"[server]\nretries = {retries}\n"
        f'[upstreams.up]\nprotocol = "{protocol}"\nbase_url = "{url}"\n{which} = {credentials}\n'
        f'[upstreams.spare]\nprotocol = "{CHAT}"\nbase_url = "{url}"\ncredential = "env:C"\n{more}'
    )


@asynccontextmanager
async def served(credentials: str = BOTH, **more: Any) -> AsyncGenerator[tuple[ScriptedUpstream, Gateway]]:
    upstream = ScriptedUpstream(pace=1)
    async with upstream, running(toml(upstream.url, credentials, **more), ENV) as gateway:
        yield upstream, gateway


async def in_session(gateway: Gateway, session: str, model: str = "up/demo", protocol: str = CHAT) -> Got:
    return await send(gateway, protocol, question(model), x_session_id=session)


async def receipt(gateway: Gateway, got: Got) -> dict[str, Any]:
    async with gateway.session.get(
        f"{gateway.url}/exchanges/{got.headers['x-dragoman-exchange']}"
    ) as response:
        return await response.json()


def used(upstream: ScriptedUpstream) -> list[str | None]:
    return [seen.key for seen in upstream.seen]


def test_conversations_share_the_keys_and_stay_with_theirs() -> None:
    async def scene() -> None:
        async with served() as (upstream, gateway):
            for _ in range(2):
                for number in range(20):
                    assert (await in_session(gateway, f"session {number}")).status == 200
            first, second = used(upstream)[:20], used(upstream)[20:]
            assert first == second
            assert set(first) == {ENV["A"], ENV["B"]}
            # A third key takes some of the conversations, and moves no other.
            text = toml(upstream.url, '["env:C", "env:A", "env:B"]')
            gateway.state.replace(loads(text, env=ENV))
            for number in range(20):
                await in_session(gateway, f"session {number}")
            moved = {new for old, new in zip(first, used(upstream)[40:], strict=True) if old != new}
            assert moved == {ENV["C"]}

    asyncio.run(scene())


def test_requests_without_a_conversation_take_any_key() -> None:
    async def scene() -> None:
        async with served() as (upstream, gateway):
            numbers = iter(n / 16 for n in range(16))
            gateway.state.upstreams.random = lambda: next(numbers)
            told = (Message("system", (Text("Say hello."),)),)
            empty = msgspec.structs.replace(question("up/demo"), messages=told)
            for _ in range(16):
                await send(gateway, CHAT, empty)
            assert set(used(upstream)) == {ENV["A"], ENV["B"]}

    asyncio.run(scene())


@pytest.mark.parametrize("name", USED_UP)
@pytest.mark.parametrize("protocol", [CHAT, GEMINI])
def test_a_used_up_quota_moves_to_the_next_key_at_once(name: str, protocol: str) -> None:
    async def scene() -> None:
        async with served(protocol=protocol) as (upstream, gateway):
            upstream.script(status(429, USED_UP[name]))
            assert (await in_session(gateway, "s")).status == 200
            one, other = used(upstream)
            assert {one, other} == {ENV["A"], ENV["B"]}
            # The key cools down: the conversation stays with the other one.
            assert (await in_session(gateway, "s")).status == 200
            assert used(upstream)[2:] == [other]

    asyncio.run(scene())


@pytest.mark.parametrize("name", PASSING)
def test_a_rate_limit_that_passes_is_retried_with_the_same_key(name: str) -> None:
    async def scene() -> None:
        async with served() as (upstream, gateway):
            upstream.script(status(429, PASSING[name], retry_after="0"))
            assert (await in_session(gateway, "s")).status == 200
            one, again = used(upstream)
            assert one == again

    asyncio.run(scene())


def test_a_rate_limit_that_lasts_moves_to_the_next_key() -> None:
    async def scene() -> None:
        async with served(retries=1) as (upstream, gateway):
            upstream.script(*[status(429, PASSING["no reason"], retry_after="0")] * 2)
            assert (await in_session(gateway, "s")).status == 200
            one, again, other = used(upstream)
            assert one == again != other
            upstream.script(status(429, b"{}", retry_after="600"))  # too long to wait
            assert (await in_session(gateway, "t")).status == 200

    asyncio.run(scene())


@pytest.mark.parametrize(
    "refusal",
    [
        status(401),
        status(403),
        status(402),
        status(400, b'{"error": {"message": "Your credit balance is too low to access the API"}}'),
    ],
    ids=["401", "403", "402", "no credit"],
)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_refused_key_is_followed_by_the_next(protocol: str, refusal: Reply) -> None:
    async def scene() -> None:
        async with served(protocol=protocol, retries=0) as (upstream, gateway):
            upstream.script(refusal)
            got = await in_session(gateway, "s", protocol=ANTHROPIC)
            assert got.status == 200
            assert sorted(filter(None, used(upstream))) == [ENV["A"], ENV["B"]]

    asyncio.run(scene())


def test_a_key_that_was_renewed_is_sent_again_before_the_next_one(tmp_path: Path) -> None:
    """Another program renews the token in the file while the request is on its way."""
    files = [tmp_path / "one", tmp_path / "two"]
    for file in files:
        file.write_text(f"old-token-{file.name}")

    async def scene() -> None:
        async with served(json.dumps([f"file:{file}" for file in files]), retries=0) as (upstream, gateway):
            upstream.keys = set()
            assert (await in_session(gateway, "s")).status == 401
            refused = used(upstream)[0]
            assert refused is not None
            first = next(file for file in files if file.name in refused)
            first.write_text(f"new-token-{first.name}")
            upstream.keys = {f"new-token-{first.name}"}
            assert (await in_session(gateway, "s")).status == 200
            assert upstream.last.key == f"new-token-{first.name}"

    asyncio.run(scene())


def test_a_key_that_is_not_there_is_passed_over() -> None:
    async def scene() -> None:
        async with served('["env:MISSING", "env:A", "file:/nowhere/key"]', retries=0) as (upstream, gateway):
            for number in range(8):
                assert (await in_session(gateway, f"session {number}")).status == 200
            assert set(used(upstream)) == {ENV["A"]}

    asyncio.run(scene())


def test_a_server_error_says_nothing_about_the_key() -> None:
    async def scene() -> None:
        async with served(retries=0) as (upstream, gateway):
            upstream.script(status(500))
            assert (await in_session(gateway, "s")).status == 500
            assert (await in_session(gateway, "s")).status == 200
            one, same = used(upstream)
            assert one == same

    asyncio.run(scene())


def test_the_next_target_follows_the_last_key_and_is_preferred_then() -> None:
    route = '[[routes]]\nmatch = "*"\nto = ["up/demo", "spare/demo"]\n'

    async def scene() -> None:
        async with served(more=route) as (upstream, gateway):
            upstream.script(status(429, QUOTA), status(401), status(401))
            assert (await in_session(gateway, "s", "m")).status == 200
            assert {*used(upstream)} == KEYS
            assert used(upstream)[-1] == ENV["C"]
            assert (await in_session(gateway, "s", "m")).status == 200
            assert used(upstream)[-1] == ENV["C"]

    asyncio.run(scene())


def test_all_keys_used_up_give_the_reason_of_the_upstream_and_the_soonest_time() -> None:
    """One key says that it waits for 40 seconds, the other for an hour: the client learns of 40."""

    async def scene() -> None:
        async with served() as (upstream, gateway):
            clock = [1000.0]
            gateway.state.upstreams.monotonic = lambda: clock[0]
            upstream.script(status(429, QUOTA, retry_after="3600"), status(429, QUOTA, retry_after="40"))
            got = await in_session(gateway, "s")
            said = got.is_refusal(429)
            assert said == (
                "You exceeded your current quota. (none of the 2 keys of up works now; the first of them is "
                "tried again in 40 s)"
            )
            assert got.headers["retry-after"] == "40"
            assert sorted(filter(None, used(upstream))) == [ENV["A"], ENV["B"]]
            clock[0] += 41  # the key that is ready again comes first, whichever the conversation began with
            ready = used(upstream)[1]
            assert (await in_session(gateway, "s")).status == 200
            assert used(upstream)[2:] == [ready]

    asyncio.run(scene())


def test_if_all_keys_are_refused_the_client_gets_no_retry_time() -> None:
    async def scene() -> None:
        async with served() as (upstream, gateway):
            upstream.keys = set()
            got = await in_session(gateway, "s")
            assert "none of the 2 keys of up works now" in str(got.is_refusal(401))
            assert "retry-after" not in got.headers

    asyncio.run(scene())


def test_a_process_learns_of_a_key_before_it_has_used_it() -> None:
    """Another worker's cooldown of a key names it by its fingerprint."""

    async def scene() -> None:
        async with served() as (upstream, gateway):
            fingerprint = Secret(ENV["A"]).fingerprint
            gateway.state.upstreams.health.adopt(
                f"up/demo {fingerprint}", Cooldown(600, 1), gateway.state.upstreams.monotonic()
            )
            for number in range(8):
                assert (await in_session(gateway, f"session {number}")).status == 200
            assert set(used(upstream)) == {ENV["B"]}

    asyncio.run(scene())


@pytest.mark.parametrize("name", USED_UP)
def test_one_key_with_a_used_up_quota_is_not_retried(name: str) -> None:
    route = '[[routes]]\nmatch = "m"\nto = ["up/demo", "spare/demo"]\n'

    async def scene() -> None:
        async with served('"env:A"', more=route) as (upstream, gateway):
            upstream.script(status(429, USED_UP[name]))
            got = await in_session(gateway, "s")
            assert got.is_refusal(429)
            assert used(upstream) == [ENV["A"]]
            assert (await in_session(gateway, "s", "m")).status == 200  # the target cools down
            assert used(upstream)[1:] == [ENV["C"]]

    asyncio.run(scene())


def test_a_quota_error_inside_a_stream_counts_too() -> None:
    error = b"data: " + QUOTA + b"\n\n"

    async def scene() -> None:
        async with served() as (upstream, gateway):
            upstream.script([error])
            assert (await in_session(gateway, "s")).status == 200
            assert sorted(filter(None, used(upstream))) == [ENV["A"], ENV["B"]]

    asyncio.run(scene())


def test_the_receipt_names_each_key_by_its_fingerprint() -> None:
    async def scene() -> None:
        async with served() as (upstream, gateway):
            upstream.script(status(429, QUOTA))
            shown = await receipt(gateway, await in_session(gateway, "s"))
            assert [one["outcome"] for one in shown["attempts"]] == ["rate_limit", "ok"]
            sent = [Secret(key or "").fingerprint for key in used(upstream)]
            assert [one["key"] for one in shown["attempts"]] == sent
            assert not any(key in json.dumps(shown) for key in KEYS)

    asyncio.run(scene())


def test_a_reload_changes_the_keys(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"

    async def scene() -> None:
        async with served() as (upstream, gateway):
            file.write_text(toml(upstream.url))
            gateway.state.replace(loads(file.read_text(), env=ENV, path=file))
            watching = asyncio.create_task(watch_config(gateway.state, 0.01))
            await in_session(gateway, "s")
            file.write_text(toml(upstream.url, '["env:C"]'))
            async with asyncio.timeout(20):
                while upstream.last.key != ENV["C"]:
                    await in_session(gateway, "s")
            watching.cancel()
            assert set(used(upstream)) <= KEYS

    asyncio.run(scene())


def test_other_questions_use_a_key_that_works() -> None:
    """Token counts go to the key of the conversation, lists of models to one that is accepted."""

    async def scene() -> None:
        async with served(protocol=ANTHROPIC) as (upstream, gateway):
            upstream.keys = {ENV["B"]}
            async with gateway.session.get(f"{gateway.url}/v1/models") as response:
                listed = await response.json()
            assert "demo" in [model["id"] for model in listed["data"]]
            body = {"model": "up/demo", "messages": [{"role": "user", "content": "hi"}]}
            headers = {"x-session-id": "s"}
            counted = f"{gateway.url}/v1/messages/count_tokens"
            assert (await in_session(gateway, "s", protocol=ANTHROPIC)).status == 200
            async with gateway.session.post(counted, json=body, headers=headers) as response:
                assert response.status == 200
            assert upstream.last.path.endswith("count_tokens")
            assert upstream.last.key == ENV["B"]

    asyncio.run(scene())


def test_check_tries_every_key() -> None:
    with in_background(ScriptedUpstream(pace=1)) as upstream:
        upstream.keys = {ENV["A"], ENV["C"]}
        config = loads(toml(upstream.url, '["env:A", "env:B", "env:MISSING"]'), env=ENV)
        findings = {one.name: one for one in asyncio.run(check(config, ENV, 5.0))}
    assert [(name, one.ok) for name, one in findings.items()] == [
        ("up with env:A", True),
        ("up with env:B", False),
        ("up with env:MISSING", False),
        ("spare", True),
    ]
    assert "env:B" in findings["up with env:B"].advice
    assert "MISSING" in findings["up with env:MISSING"].message


def test_the_start_reports_each_missing_key() -> None:
    def told(credentials: str) -> list[str]:
        return missing_credentials(loads(toml("http://127.0.0.1:9", credentials), env=ENV), ENV)

    assert told(BOTH) == []
    [one] = told('["env:A", "env:MISSING"]')
    assert one.startswith("the upstream up lacks a key: the environment variable MISSING is not set")
    assert all("up cannot be used" in sentence for sentence in told('["env:M1", "env:M2"]'))


@pytest.mark.parametrize("client", [CHAT, RESPONSES, ANTHROPIC, GEMINI])
def test_a_list_of_one_key_is_one_key(client: str) -> None:
    async def scene() -> None:
        async with served('["env:B"]') as (upstream, gateway):
            assert (await ask(gateway, client, "up/demo")).status == 200
            assert used(upstream) == [ENV["B"]]

    asyncio.run(scene())
