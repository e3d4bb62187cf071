"""Keys that are made, rotated and revoked while gateways run."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.gateways import Gateway, Loop, gateway
from support.plain_http import Got, call, post
from support.scripted_upstream import ScriptedUpstream

from dragoman.cli.commands import main
from dragoman.config import load
from dragoman.gateway.state import State
from dragoman.store import StoredKey

CHAT = {"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}
RESPONSES = {"model": "demo", "input": "Hello"}


class Clocks:
    """Wall clock and monotonic clock. They stand still until they are set."""

    def __init__(self) -> None:
        self.now = 1_900_000_000.0
        self.passed = 0.0


@pytest.fixture
def config(upstream: ScriptedUpstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "dragoman.toml"
    file.write_text(
        f"""
        [server]
        store = "store.db"
        retries = 0
        [upstreams.up]
        protocol = "openai-chat"
        base_url = "{upstream.url}"
        credential = "none"
        [keys.config-key]
        secret = "config-secret-1234"
        """
    )
    return file


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr("dragoman.cli.keys.operations.time.time", lambda: clocks.now)
    return clocks


@pytest.fixture
def served(loop: Loop, config: Path, clocks: Clocks) -> Iterator[Gateway]:
    async def made() -> State:
        return State(load(config), env={}, clock=lambda: clocks.now, monotonic=lambda: clocks.passed)

    with gateway(loop.run(made()), loop) as served:
        yield served


class Keys:
    """`dragoman keys` for one config."""

    def __init__(self, config: Path, clocks: Clocks) -> None:
        self._config, self._clocks = config, clocks

    def run(self, *words: str) -> Result:
        result = CliRunner().invoke(main, ["keys", *words, "--config", str(self._config)])
        self._clocks.passed += 1  # gateways look at the store once a second
        return result

    def secret(self, *words: str) -> str:
        result = self.run(*words)
        assert result.exit_code == 0, result.output
        return result.stdout.strip()


@pytest.fixture
def keys(config: Path, clocks: Clocks) -> Keys:
    return Keys(config, clocks)


def ask(served: Gateway, key: str, **more: str) -> Got:
    return post(f"{served.url}/v1/chat/completions", {**CHAT, **more}, x_api_key=key)


def told(got: Got) -> str:
    return got.json["error"]["message"]


def test_a_key_counts_in_a_running_gateway_until_it_is_revoked(served: Gateway, keys: Keys) -> None:
    assert ask(served, "dgm-nothing").status == 401
    secret = keys.secret("create", "research")
    assert re.fullmatch(r"dgm-[\w-]{43}", secret)
    assert ask(served, secret).status == 200
    assert keys.run("revoke", "research").exit_code == 0
    refused = ask(served, secret)
    assert refused.status == 401
    assert told(refused) == 'the key "research" was revoked; ask the operator for another'


def test_a_key_is_believed_for_a_second_without_a_look_at_the_store(
    served: Gateway, keys: Keys, clocks: Clocks
) -> None:
    secret = keys.secret("create", "research")
    assert ask(served, secret).status == 200
    assert keys.run("revoke", "research").exit_code == 0
    clocks.passed -= 1
    assert ask(served, secret).status == 200
    clocks.passed += 1
    assert ask(served, secret).status == 401


def test_a_key_keeps_what_it_has_when_it_is_rotated(served: Gateway, keys: Keys, clocks: Clocks) -> None:
    old = keys.secret("create", "research")
    said = post(f"{served.url}/v1/responses", RESPONSES, x_api_key=old)
    new = keys.secret("rotate", "research", "--grace", "1h")
    continued = {**RESPONSES, "previous_response_id": said.json["id"]}
    for secret in (old, new):
        assert post(f"{served.url}/v1/responses", continued, x_api_key=secret).status == 200
        id = said.headers["x-dragoman-exchange"]
        assert call(f"{served.url}/exchanges/{id}", x_api_key=secret).json["key"] == "research"
    clocks.now += 3600
    assert [ask(served, secret).status for secret in (old, new)] == [401, 200]
    newest = keys.secret("rotate", "research")
    assert [ask(served, secret).status for secret in (old, new, newest)] == [401, 401, 200]


def test_a_key_expires(served: Gateway, keys: Keys, clocks: Clocks) -> None:
    secret = keys.secret("create", "research", "--expires", "90d")
    clocks.now += 90 * 86_400 - 1
    assert ask(served, secret).status == 200
    clocks.now += 1
    assert told(ask(served, secret)) == 'the key "research" has expired; ask the operator for another'


def test_a_key_has_the_limits_and_models_that_it_was_made_with(served: Gateway, keys: Keys) -> None:
    options = ["--rate", "2/min", "--models", "demo*", "--models", "small", "--team", "science"]
    secret = keys.secret("create", "research", *options)
    assert ask(served, secret, model="large").status == 403
    assert [ask(served, secret).status for _ in range(3)] == [200, 200, 429]
    entries = call(f"{served.url}/exchanges", x_api_key=secret).json["exchanges"]
    assert {entry["team"] for entry in entries} == {"science"}


def test_the_list_shows_everything_but_secrets(
    served: Gateway, keys: Keys, loop: Loop, clocks: Clocks
) -> None:
    made = keys.secret(
        "create", "research", "--budget", "50/month", "--budget", "2M tokens/day", "--rate", "60/min",
        "--tokens", "200k/min", "--streams", "4", "--models", "claude-*", "--expires", "2031-01-31",
    )  # fmt: skip
    keys.secret("create", "boss", "--role", "admin")
    ask(served, made)
    clocks.passed += 60

    async def used() -> None:
        await served.state.keys.refresh()

    loop.run(used())
    keys.run("revoke", "boss")
    lines = keys.run("list").stdout.splitlines()
    head, *rows = [re.split(r"  +", line) for line in lines]
    assert head == ["NAME", "ROLE", "TEAM", "SECRET", "MODELS", "LIMITS", "LAST USED", "EXPIRES"]
    limits = "$50/month; 2M tokens/day; 60 requests/min; 200k tokens/min; 4 at once"
    used_at = "2030-03-17T17:46Z"
    assert rows[0] == ["config-key", "user", "-", "in the config", "all", "none", "-", "never"]
    assert rows[1][:3] + rows[1][4:] == ["boss", "admin", "-", "all", "none", "-", "revoked"]
    assert rows[2] == [
        "research", "user", "-", f"{made[:8]}…", "claude-*", limits, used_at, "2031-01-31T00:00Z"
    ]  # fmt: skip
    as_json = keys.run("list", "--json").stdout
    assert made not in as_json + "\n".join(lines)
    assert "config-secret" not in as_json


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["create", "research"], 'there is a key "research" already'),
        (["create", "config-key"], "[keys.config-key] is in the config already"),
        (["create", "bad name"], "a name has at most 64 letters"),
        (["create", "x", "--budget", "50/year"], "must be US dollars or tokens per day or month"),
        (["create", "x", "--budget", "5/day", "--budget", "6/day"], "two budgets of the same kind"),
        (["create", "x", "--rate", "fast"], "must be a number per min, hour or day"),
        (["create", "x", "--expires", "soon"], "must be a time from now (90d, 12h) or a date"),
        (["create", "x", "--expires", "2020-01-01"], "is in the past"),
        (["create", "x", "--models", "claude(.*)"], "is not a glob"),
        (["revoke", "nobody"], 'there is no key "nobody" in the store; its keys are: research'),
        (["revoke", "config-key"], "remove the table from the config"),
        (["rotate", "config-key"], "change its secret there"),
        (["create", "a", "--rate", "1.5/min"], "must be a whole number, not 1.5"),
        (["create", "a", "--tokens", "0.4/min"], "must be a whole number"),
        (["create", "a", "--budget", "10.5 tokens/day"], "must be a whole number"),
        (["rotate", "research", "--grace", "long"], "must be a number of seconds, or a time"),
    ],
)
def test_an_impossible_command_is_reported(words: list[str], why: str, keys: Keys) -> None:
    keys.secret("create", "research")
    result = keys.run(*words)
    assert result.exit_code != 0
    said = result.output if isinstance(result.exception, SystemExit) else str(result.exception)
    assert why in " ".join(said.split())


def test_a_revoked_name_cannot_be_used_again(keys: Keys) -> None:
    keys.secret("create", "research")
    keys.run("revoke", "research")
    assert "already" in str(keys.run("create", "research").output)
    assert "is revoked; create another one" in str(keys.run("rotate", "research").output)


def test_the_first_stored_key_closes_an_open_gateway(
    loop: Loop, config: Path, keys: Keys, clocks: Clocks
) -> None:
    config.write_text(config.read_text().partition("[keys.")[0])

    async def made() -> State:
        return State(load(config), env={}, clock=lambda: clocks.now, monotonic=lambda: clocks.passed)

    with gateway(loop.run(made()), loop) as served:
        assert ask(served, "anything").status == 200
        secret = keys.secret("create", "research")
        assert [ask(served, key).status for key in ("anything", secret)] == [401, 200]
        keys.run("revoke", "research")
        # It must not be open again: whoever revokes the last key does not mean to let everybody in.
        assert [ask(served, key).status for key in ("anything", secret)] == [401, 401]


def test_keys_stay_when_the_store_loses_them(
    loop: Loop, config: Path, keys: Keys, clocks: Clocks, caplog: pytest.LogCaptureFixture
) -> None:
    """A store that is deleted and made anew must not open the gateway."""
    config.write_text(config.read_text().partition("[keys.")[0])

    async def made() -> State:
        return State(load(config), env={}, clock=lambda: clocks.now, monotonic=lambda: clocks.passed)

    with gateway(loop.run(made()), loop) as served:
        secret = keys.secret("create", "research")
        assert [ask(served, key).status for key in ("anything", secret)] == [401, 200]

        async def nothing() -> list[StoredKey]:
            return []

        there = served.state.store.keys
        served.state.store.keys = nothing  # type: ignore[method-assign]
        for _ in range(2):
            clocks.passed += 1
            assert [ask(served, key).status for key in ("anything", secret)] == [401, 200]
        assert caplog.text.count("the store has lost its keys") == 1
        served.state.store.keys = there  # type: ignore[method-assign]
        keys.run("revoke", "research")
        assert [ask(served, key).status for key in ("anything", secret)] == [401, 401]


def test_a_secret_that_was_replaced_says_so(served: Gateway, keys: Keys, clocks: Clocks) -> None:
    old = keys.secret("create", "research")
    keys.secret("rotate", "research", "--grace", "1h")
    assert ask(served, old).status == 200
    clocks.now += 3600
    assert "has a new secret since" in told(ask(served, old))


def test_a_key_of_the_gateway_never_goes_to_an_upstream(
    loop: Loop, config: Path, keys: Keys, clocks: Clocks, upstream: ScriptedUpstream
) -> None:
    config.write_text(config.read_text().replace('credential = "none"', 'credential = "client"'))
    secret, gone = keys.secret("create", "research"), keys.secret("create", "former")
    keys.run("revoke", "former")

    async def made() -> State:
        return State(load(config), env={}, clock=lambda: clocks.now, monotonic=lambda: clocks.passed)

    with gateway(loop.run(made()), loop) as served:
        url = f"{served.url}/v1/chat/completions"
        assert post(url, CHAT, x_api_key=secret).status == 401
        assert post(url, CHAT, x_api_key=secret, authorization=f"Bearer {gone}").status == 401
        assert post(url, CHAT, x_api_key=secret, authorization="Bearer own-key-of-a-client").status == 200
        assert [seen.key for seen in upstream.seen] == ["own-key-of-a-client"]
