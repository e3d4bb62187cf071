"""`[keys.NAME]` and `[teams.NAME]` in the config, and the store that belongs to a config."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.gateways import Gateway, Loop, gateway
from support.plain_http import call

from dragoman.cli.serve.service import ServeOptions, default_store, effective_config
from dragoman.config import ConfigError, limits, load, loads, reload, with_server
from dragoman.config.limits import Budget, Rate, UsageLimits

UPSTREAM = '[upstreams.up]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:9"\ncredential = "none"\n'
FULL = """
[keys.research]
secret = "env:RESEARCH_KEY"
role = "user"
budget = ["50/month", "2M tokens/day"]
rate = "60/min"
tokens = "200k/min"
streams = 4
models = ["claude-*"]
team = "science"
expires = 2027-01-31

[teams.science]
budget = "500/month"
"""


def test_every_setting_of_a_key() -> None:
    config = loads(UPSTREAM + FULL)
    key = config.named_keys["research"]
    assert (key.role, key.models, key.team) == ("user", ("claude-*",), "science")
    assert key.limits == UsageLimits(
        rate=Rate(60, 60),
        tokens=Rate(200_000, 60),
        streams=4,
        budgets=(Budget(50_000_000, "money", "month"), Budget(2_000_000, "tokens", "day")),
    )
    assert key.expires == 1_801_353_600.0
    assert config.teams["science"].limits.budgets == (Budget(500_000_000, "money", "month"),)
    assert config.named_secrets({"RESEARCH_KEY": "s"})["research"].reveal() == "s"
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("50/month", "$50/month"),
        ("$0.5 / day", "$0.5/day"),
        ("1.5k/month", "$1500/month"),
        ("20 USD/month", "$20/month"),
        ("2M tokens/day", "2M tokens/day"),
        ("1500 Tokens / Month", "1.5k tokens/month"),
        ("1234567 tokens/day", "1234567 tokens/day"),
    ],
)
def test_a_budget_is_shown_as_it_can_be_written(written: str, shown: str) -> None:
    budget = limits.parse_budget(written)
    assert str(budget) == shown
    assert limits.parse_budget(shown) == budget


def test_a_secret_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from-a-file\n")
    file = tmp_path / "dragoman.toml"
    file.write_text(UPSTREAM + '[keys.ann]\nsecret = "file:key"\n')
    assert load(file).named_secrets({})["ann"].reveal() == "from-a-file"
    (tmp_path / "key").write_text("\n")
    with pytest.raises(ConfigError, match=r"keys.ann.secret names the file .*key, which is empty"):
        load(file).named_secrets({})
    (tmp_path / "key").unlink()
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(file).named_secrets({})


def test_a_secret_that_is_not_set_or_not_alone() -> None:
    config = loads(UPSTREAM + '[server]\nkeys = ["one"]\n[keys.ann]\nsecret = "env:ANN"\n')
    with pytest.raises(ConfigError, match=r"keys\.ann\.secret names the environment variable ANN"):
        config.named_secrets({})
    with pytest.raises(ConfigError, match=r"keys\.ann has the same secret as server\.keys"):
        config.named_secrets({"ANN": "one"})


def test_a_host_for_others_may_have_named_keys_only() -> None:
    host = '[server]\nhost = "0.0.0.0"\n'
    with pytest.raises(ConfigError, match=r"add \[keys.NAME\]"):
        loads(host + UPSTREAM)
    loads(host + UPSTREAM + '[keys.ann]\nsecret = "s"\n')
    with_server(loads(UPSTREAM + '[keys.ann]\nsecret = "s"\n'), host="192.168.0.7")


def test_a_team_without_limits_among_teams_is_noticed() -> None:
    config = loads(UPSTREAM + '[keys.ann]\nsecret = "s"\nteam = "sience"\n[teams.science]\nrate = "9/min"\n')
    assert 'is in the team "sience", which has no [teams.sience]' in config.warnings[0]
    assert 'did you mean "science"?' in config.warnings[0]


@contextmanager
def served_with(loop: Loop, text: str) -> Iterator[Gateway]:
    with gateway(UPSTREAM + text, loop, {"ANN": "ann-secret-1234"}) as served:
        yield served


def test_a_gateway_with_named_keys_only_is_closed(loop: Loop) -> None:
    with served_with(loop, '[keys.ann]\nsecret = "env:ANN"\n') as served:
        assert call(f"{served.url}/v1/models").status == 401
        assert call(f"{served.url}/v1/models", x_api_key="ann-secret-1234").status == 200
        # A page of another site has no key, so it needs no check of its origin.
        elsewhere = {"origin": "https://evil.example"}
        assert call(f"{served.url}/exchanges", **elsewhere).status == 401


def test_a_reload_adds_and_removes_keys(loop: Loop) -> None:
    def status(served: Gateway) -> int:
        return call(f"{served.url}/v1/models", x_api_key="ann-secret-1234").status

    async def replace(served: Gateway, text: str) -> None:
        served.state.replace(loads(UPSTREAM + text))

    with served_with(loop, '[server]\nkeys = ["other-key-1234"]\n') as served:
        assert status(served) == 401
        loop.run(replace(served, '[server]\nkeys = ["other-key-1234"]\n[keys.ann]\nsecret = "env:ANN"\n'))
        assert status(served) == 200
        loop.run(replace(served, '[keys.ann]\nsecret = "env:ANN"\nexpires = 2020-01-01\n'))
        assert status(served) == 401


def test_a_reload_with_a_missing_secret_keeps_the_old_config(tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    file.write_text(UPSTREAM + '[keys.ann]\nsecret = "s"\n')
    old = load(file)
    file.write_text(UPSTREAM + '[keys.ann]\nsecret = "env:ANN"\n')
    result = reload(old, {})
    assert result.config is old
    assert "keys.ann.secret names the environment variable ANN, which is not set" in result.message


def test_each_config_has_a_store_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "DRAGOMAN_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    usual = tmp_path / ".config" / "dragoman" / "dragoman.toml"
    files = [usual, tmp_path / "one" / "dragoman.toml", tmp_path / "two" / "dragoman.toml"]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text(UPSTREAM)
    stores = [effective_config(ServeOptions(file=file)).server.store for file in files]
    assert len({*stores}) == 3
    data = default_store(loads(UPSTREAM), {"HOME": str(tmp_path)})
    assert stores[0] == data
    assert data.name == "dragoman.db"
    link = tmp_path / "link.toml"
    link.symlink_to(files[1])
    assert effective_config(ServeOptions(file=link)).server.store == stores[1]
    files[2].write_text('[server]\nstore = "own.db"\n' + UPSTREAM)
    assert effective_config(ServeOptions(file=files[2])).server.store == files[2].parent / "own.db"
