"""Scores: a run whose true rates are known gives exactly those counts, in every place that shows them."""

import json
import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from support.gateways import Gateway, Loop, gateway
from support.plain_http import call, post
from support.scripted_upstream import ScriptedUpstream, status

from dragoman.cli import main
from dragoman.config import loads
from dragoman.gateway.process.ratings import refresh
from dragoman.gateway.state import State
from dragoman.observe.scores.examples import masked
from dragoman.store import Receipt, ScoreCount

DAY = 86_400
TOOL = {
    "name": "Bash",
    "description": "Run a shell command",
    "input_schema": {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
}
ASKED = {"role": "user", "content": "Run the command `ls -la /home/mara`"}


def config(url: str, more: str = "") -> str:
    return f"""
        [server]
        retries = 0
        [upstreams.up]
        protocol = "openai-chat"
        base_url = "{url}"
        credential = "none"
        [upstreams.other]
        protocol = "openai-chat"
        base_url = "{url}"
        credential = "none"
        {more}
    """


def ask(running: Gateway, model: str, times: int = 1) -> Any:
    body = {"max_tokens": 500, "stream": True, "tools": [TOOL], "messages": [ASKED], "model": model}
    for _ in range(times):
        got = post(f"{running.url}/v1/messages", body)
    return got


def scores(running: Gateway, **asked: Any) -> dict[str, dict[str, Any]]:
    """The rows of `GET /scores`, by target."""
    running.loop.run(running.state.observed.ledger.close())
    got = call(f"{running.url}/scores?{urlencode(asked)}")
    assert got.status == 200, got.body
    return {f"{row['upstream']}/{row['model']}": row for row in got.json["rows"]}


def counted(row: dict[str, Any]) -> dict[str, int]:
    """The classes of calls that occurred."""
    return {name: share["count"] for name, share in row["calls"].items() if share["count"]}


def test_a_run_whose_rates_are_known_gives_exactly_these_counts(
    loop: Loop, upstream: ScriptedUpstream
) -> None:
    with gateway(config(upstream.url), loop) as running:
        for model, times in (
            ("up/demo", 7), ("up/demo-misnamed", 5), ("up/demo-leak", 4), ("up/demo-invalid", 3),
            ("up/demo-invented", 2), ("up/demo-ghost", 3), ("up/demo-duplicate", 2), ("up/demo-cut", 6),
            ("up/demo-503", 4), ("up/demo-ratelimit", 1), ("other/demo", 2),
        ):  # fmt: skip
            ask(running, model, times)
        found = scores(running)
    assert {target: (row["answers"], counted(row)) for target, row in found.items()} == {
        "up/demo": (7, {"valid": 7}),
        "up/demo-misnamed": (5, {"mended": 5}),
        "up/demo-leak": (4, {"leaked": 4}),
        "up/demo-invalid": (3, {"invalid": 3}),
        "up/demo-invented": (2, {"invented": 2}),
        "up/demo-ghost": (3, {"valid": 3, "ghost": 3}),
        "up/demo-duplicate": (2, {"valid": 2, "duplicate": 2}),
        "up/demo-cut": (6, {"cut": 6}),
        "up/demo-503": (4, {}),
        "up/demo-ratelimit": (1, {}),
        "other/demo": (2, {"valid": 2}),
    }
    good = {target: row["good"]["count"] for target, row in found.items() if row["good"]["count"]}
    assert good == {
        "up/demo": 7, "up/demo-misnamed": 5, "up/demo-leak": 4, "up/demo-ghost": 3, "up/demo-duplicate": 2,
        "other/demo": 2,
    }  # fmt: skip
    assert all(row["good"]["of"] == row["answers"] for row in found.values())
    assert {target: row["failures"] for target, row in found.items() if row["failures"]} == {
        "up/demo-cut": {"upstream": 6},
        "up/demo-503": {"overloaded": 4},
        "up/demo-ratelimit": {"rate_limit": 1},
    }
    assert found["up/demo-misnamed"]["rules"] == {"tool-alias": 5}
    assert found["up/demo-leak"]["rules"]["call-in-text"] == 4
    assert found["up/demo"]["rules"] == {}
    # Each answer that began is in one group of times.
    assert found["up/demo"]["first_event"]["count"] == 7
    assert found["up/demo-503"]["first_event"]["count"] == 0
    assert sum(count for _, count in found["up/demo"]["first_event"]["buckets"]) == 7


def test_an_interval_comes_with_each_share(loop: Loop, upstream: ScriptedUpstream) -> None:
    with gateway(config(upstream.url), loop) as running:
        ask(running, "up/demo", 10)
        valid = scores(running)["up/demo"]["calls"]["valid"]
        assert (valid["count"], valid["of"], valid["share"], valid["high"]) == (10, 10, 1.0, 1.0)
        # Ten of ten: the lower limit is 10 / (10 + 1.96²).
        assert valid["low"] == pytest.approx(10 / (10 + 1.959963984540054**2))


def test_each_attempt_counts_for_its_own_target(loop: Loop, upstream: ScriptedUpstream) -> None:
    routes = '[[routes]]\nmatch = "m"\nto = ["up/demo-503", "other/demo-misnamed"]'
    with gateway(config(upstream.url, routes), loop) as running:
        ask(running, "m", 2)
        found = scores(running)
    assert found["up/demo-503"]["failures"] == {"overloaded": 2}
    assert counted(found["up/demo-503"]) == {}
    assert counted(found["other/demo-misnamed"]) == {"mended": 2}
    assert found["other/demo-misnamed"]["failures"] == {}


def test_what_was_asked_for_again_counts_as_it_first_came(loop: Loop, upstream: ScriptedUpstream) -> None:
    with gateway(config(upstream.url, '[tools]\ninvalid = "reask"'), loop) as running:
        ask(running, "up/demo-invalid", 3)
        row = scores(running)["up/demo-invalid"]
    assert counted(row) == {"invalid": 3, "valid": 3}
    assert (row["reasked"]["count"], row["reasked"]["of"]) == (3, 3)
    assert (row["good"]["count"], row["good"]["of"]) == (0, 3)


def test_the_clients_own_mistake_says_nothing_about_the_target(
    loop: Loop, upstream: ScriptedUpstream
) -> None:
    with gateway(config(upstream.url), loop) as running:
        upstream.script(status(400, b'{"error":{"message":"bad"}}'))
        ask(running, "up/demo")
        row = scores(running)["up/demo"]
    assert row["failures"] == {"invalid_request": 1}
    assert (row["answers"], row["good"]["of"], row["good"]["share"]) == (1, 0, None)


def test_filters_and_wrong_parameters(loop: Loop, upstream: ScriptedUpstream) -> None:
    with gateway(config(upstream.url), loop) as running:
        ask(running, "up/demo")
        ask(running, "other/demo-misnamed")
        assert set(scores(running, upstream="up")) == {"up/demo"}
        assert set(scores(running, model="demo-misnamed")) == {"other/demo-misnamed"}
        assert scores(running, since="2020-01-01", until="2020-02-01") == {}
        limited = call(f"{running.url}/scores?limit=1").json
        assert (len(limited["rows"]), limited["more"]) == (1, 1)
        for wrong in ("since=soon", "limit=x", "since=2026-02-01&until=2026-01-01"):
            got = call(f"{running.url}/scores?{wrong}")
            assert got.status == 400
            assert wrong.partition("=")[0] in got.body.decode()


def test_a_secret_in_a_models_name_is_not_kept(loop: Loop, upstream: ScriptedUpstream) -> None:
    secret = "s3cret-" + "0123456789" * 3
    with gateway(
        config(upstream.url).replace("[server]", "[server]\nredact = ['s3cret-[0-9]+']", 1), loop
    ) as running:
        ask(running, f"up/{secret}")
        (target,) = scores(running)
        assert "s3cret" not in target


# The command


def dragoman(*given: object) -> Result:
    result = CliRunner().invoke(main, [str(one) for one in given])
    assert result.exit_code == 0, result.output
    return result


@pytest.fixture
def used(tmp_path: Path, loop: Loop, upstream: ScriptedUpstream) -> Path:
    """The config of a gateway that served some requests and is gone."""
    file = tmp_path / "dragoman.toml"
    file.write_text(config(upstream.url).replace("[server]", f'[server]\nstore = "{tmp_path}/store.db"', 1))
    with gateway(State(loads(file.read_text(), env={}), env={}), loop) as running:
        ask(running, "up/demo", 3)
        ask(running, "up/demo-misnamed", 2)
        ask(running, "up/demo-503")
        running.loop.run(running.state.observed.ledger.close())
    return file


def test_the_command_needs_no_gateway(used: Path) -> None:
    told = dragoman("scores", "--config", used).stdout
    lines = {line.split()[0]: line.split() for line in told.splitlines() if line.startswith("up/")}
    assert lines["up/demo"][1:6] == ["3", "100.0%", "(43-100)", "3", "100.0%"]
    assert lines["up/demo-misnamed"][1:2] == ["2"]
    assert "  up/demo-503: overloaded 1" in told
    assert "  up/demo-misnamed: tool-alias 2" in told
    only = dragoman("scores", "--config", used, "--model", "demo", "--json").stdout
    (row,) = json.loads(only)["rows"]
    assert (row["model"], row["calls"]["valid"]["count"]) == ("demo", 3)
    empty = dragoman("scores", "--config", used, "--upstream", "nobody").stdout
    assert "No answers were counted" in empty


def test_the_report_shows_mends_and_nothing_that_was_written(used: Path) -> None:
    file = used.parent / "report.md"
    dragoman("scores", "--config", used, "--report", file)
    report = file.read_text()
    assert "## up/demo-misnamed" in report
    assert "| mended | 100.0% (34.2% to 100.0%), 2 of 2 |" in report
    assert "| `tool-alias` | 2 |" in report
    assert "Failed attempts: overloaded 1; attempts in all: 1." in report
    # The wrong and the right name of the parameter are shown, and the shape of its value.
    assert 'after:  {"command":"xx -xx /xxxx/xxxx"}' in report
    assert "mara" not in report
    assert dragoman("scores", "--config", used, "--report", "-").stdout == report


WORDS = st.text("abcXYZé019 _-/", min_size=1, max_size=30)
VALUES = st.recursive(
    st.one_of(WORDS, st.integers(), st.booleans(), st.none()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["path", "old_text"]), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["command", "prompt"]), VALUES), st.integers(0, 200))
def test_an_example_keeps_names_and_shape_and_no_value(arguments: dict[str, Any], cut: int) -> None:
    text = json.dumps(arguments, ensure_ascii=False)
    shown = masked(text)
    left = re.sub(r'"(command|prompt|path|old_text)"(?=\s*:)|true|false|null', "", shown)
    assert re.search(r"[^\W\d_x]|[1-9]", left) is None
    if len(text) <= 240:
        assert re.sub(r"\w", "", shown) == re.sub(r"\w", "", text)
    # Broken JSON: a name cannot be told from a value, so only known names stay.
    broken = masked(text[:cut] + "'", known={"command"})
    assert re.search(r"[^\W\d_x]|[1-9]", re.sub(r'"command"|true|false|null', "", broken)) is None


# Routes that prefer reliable targets

PREFER = '[[routes]]\nmatch = "m"\nto = ["up/demo", "other/demo-misnamed"]\nprefer = "reliable"'


def rated(running: Gateway, **targets: tuple[float, int, int]) -> None:
    """Store good and poor answers of a target, so many days ago. Names: up_demo for up/demo."""
    made: list[Receipt] = []
    for name, (days, good, poor) in targets.items():
        upstream, _, model = name.replace("__", "-").partition("_")
        counts = (
            ScoreCount(upstream, model, "quality", "good", good),
            ScoreCount(upstream, model, "quality", "poor", poor),
        )
        made.append(Receipt(f"{name}{days}{good}", time.time() - days * DAY, scores=counts))
    running.state.store.add_receipts(lambda: made).result()
    running.loop.run(refresh(running.state))


def chosen(running: Gateway) -> list[tuple[str, str]]:
    return [(choice.key, choice.why) for choice in running.state.upstreams.choices("m")]


def test_the_more_reliable_target_comes_first_and_the_receipt_says_why(
    loop: Loop, upstream: ScriptedUpstream
) -> None:
    with gateway(config(upstream.url, PREFER), loop) as running:
        rated(running, up_demo=(0, 60, 40), other_demo__misnamed=(0, 190, 10))
        id = ask(running, "m").headers["x-dragoman-exchange"]
        receipt = call(f"{running.url}/exchanges/{id}").json
    (attempt,) = receipt["attempts"]
    assert attempt["target"] == "other/demo-misnamed"
    assert attempt["why"].startswith('route "m", by reliability: 95.0% of 200 recent answers good')


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0, 20, 20), (0, 200, 0)),  # too few answers of the first
        ((0, 60, 40), (0, 40, 0)),  # too few of the second
        ((0, 93, 7), (0, 97, 3)),  # the intervals overlap
        ((20, 60, 40), (0, 200, 0)),  # the bad days are long ago: too little of them is left
        ((0, 100, 0), (0, 60, 40)),  # the first is the better one
    ],
)
def test_without_certainty_the_configured_order_stays(
    loop: Loop, upstream: ScriptedUpstream, first: Any, second: Any
) -> None:
    with gateway(config(upstream.url, PREFER), loop) as running:
        before = chosen(running)
        assert [key for key, _ in before] == ["up/demo", "other/demo-misnamed"]
        assert "too few recent answers to compare (0 of 50)" in before[0][1]
        rated(running, up_demo=first, other_demo__misnamed=second)
        assert [key for key, _ in chosen(running)] == ["up/demo", "other/demo-misnamed"]


def test_other_routes_keep_their_order(loop: Loop, upstream: ScriptedUpstream) -> None:
    plain = PREFER.replace('prefer = "reliable"', 'prefer = "listed"')
    with gateway(config(upstream.url, plain), loop) as running:
        rated(running, up_demo=(0, 0, 500), other_demo__misnamed=(0, 500, 0))
        assert [key for key, _ in chosen(running)] == ["up/demo", "other/demo-misnamed"]
        assert chosen(running)[0][1] == 'route "m"'
