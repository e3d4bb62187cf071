"""`GET /usage` and `dragoman usage`: sums of requests, tokens and cost."""

import csv
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner, Result
from support.gateways import Gateway, Loop, gateway
from support.plain_http import call, post
from support.scripted_upstream import ScriptedUpstream, status

from dragoman.cli import main
from dragoman.store import Receipt, open_store

HOUR, DAY = 3_600, 86_400
NOON = time.time() // DAY * DAY - DAY / 2  # of yesterday, in UTC
SAID = {"role": "user", "content": "hi"}


def config(url: str) -> str:
    return f"""
        [server]
        retries = 0
        [upstreams.up]
        protocol = "openai-chat"
        base_url = "{url}"
        credential = "none"
        [prices]
        "up/demo" = {{ input = 1e6, output = 0 }}
    """


@pytest.fixture
def running(loop: Loop, upstream: ScriptedUpstream) -> Iterator[Gateway]:
    with gateway(config(upstream.url), loop) as served:
        yield served


def receipt(number: int, at: float, **more: Any) -> Receipt:
    return Receipt(
        id=f"r{number}", at=at, **{"model": "m", "upstream": "up", "input": 10, "micros": 5, **more}
    )


def stored(running: Gateway, *receipts: Receipt) -> None:
    running.state.store.add_receipts(lambda: receipts).result()


def usage(running: Gateway, **asked: Any) -> dict[str, Any]:
    got = call(f"{running.url}/usage?{urlencode(asked)}")
    assert got.status == 200, got.body
    return got.json


def test_requests_are_summed_when_they_end(running: Gateway, upstream: ScriptedUpstream, loop: Loop) -> None:
    body = {"max_tokens": 50, "messages": [SAID]}
    for model in ("demo", "demo", "demo-misnamed"):
        post(f"{running.url}/v1/messages", {**body, "model": model})
    upstream.script(status(500, b"{}"))
    post(f"{running.url}/v1/messages", {**body, "model": "demo"})
    loop.run(running.state.observed.ledger.close())
    found = usage(running)
    assert found["by"] == "model"
    assert found["more"] == 0
    demo, other = found["rows"]
    assert (demo["group"], demo["requests"], demo["failed"], demo["unpriced"]) == ("demo", 3, 1, 0)
    assert demo["cost"] == demo["input"] > 0  # a dollar for each token of the prompt
    assert (other["group"], other["cost"], other["unpriced"]) == ("demo-misnamed", None, 1)
    assert other["input"] > 0
    total = found["total"]
    assert (total["requests"], total["cost"], total["unpriced"]) == (4, demo["cost"], 1)
    # The failed request named the same first message: one conversation.
    (session,) = usage(running, by="session")["rows"]
    assert session["requests"] == 4
    exchanges = call(f"{running.url}/exchanges?session={session['group']}").json["exchanges"]
    assert len(exchanges) == 4
    assert usage(running, by="upstream")["rows"][0]["group"] == "up"
    assert usage(running, by="key")["rows"][0]["group"] == ""


def test_groups_filters_and_order(running: Gateway) -> None:
    stored(
        running,
        receipt(1, NOON, key="mara", team="core", model="a", micros=2_000_000, mended=1, calls=2),
        receipt(2, NOON, key="jonas", team="core", model="a", micros=1_000_000, failed=1),
        receipt(
            3, NOON, key="jonas", team="core", model="b", micros=None, input=99, cached=50, calls=3, mended=3
        ),
    )
    when = {"since": NOON - DAY, "until": NOON + DAY}
    assert [(row["group"], row["cost"]) for row in usage(running, by="key", **when)["rows"]] == [
        ("mara", 2.0),
        ("jonas", 1.0),
    ]
    by_mended = usage(running, by="key", order="mended", **when)["rows"]
    assert [row["group"] for row in by_mended] == ["jonas", "mara"]
    (team,) = usage(running, by="team", **when)["rows"]
    assert (team["group"], team["cost"], team["unpriced"], team["mended"]) == ("core", 3.0, 1, 4)
    (only,) = usage(running, by="model", key="jonas", model="b", **when)["rows"]
    assert (only["cost"], only["input"], only["cached"]) == (None, 99, 50)
    limited = usage(running, by="key", limit=1, **when)
    assert (len(limited["rows"]), limited["more"], limited["total"]["requests"]) == (1, 1, 3)
    (everything,) = usage(running, by="all", **when)["rows"]
    assert everything == {**limited["total"], "group": everything["group"]}


def day(at: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(at))


def test_over_time(running: Gateway) -> None:
    first, second, after = day(NOON - DAY), day(NOON), day(NOON + DAY)
    stored(
        running,
        receipt(1, NOON - DAY, model="a", micros=10),
        receipt(2, NOON, model="a", micros=20),
        *(receipt(10 + number, NOON, model=f"m{number}", micros=1) for number in range(9)),
    )
    found = usage(running, since=first, until=after, over="day")
    assert found["since"] == NOON - DAY - 12 * HOUR
    assert [(point["group"], point["requests"]) for point in found["total_series"]] == [
        (first, 1),
        (second, 10),
    ]
    assert len(found["rows"]) == 10
    assert [one["group"] for one in found["series"]] == ["a", *(f"m{number}" for number in range(5))]
    points = found["series"][0]["points"]
    assert [(point["group"], round(point["cost"] * 1e6)) for point in points] == [
        (first, 10),
        (second, 20),
    ]
    hours = usage(running, since=NOON - 1, until=NOON + 1, over="hour")
    assert [point["group"] for point in hours["total_series"]] == [f"{second}T12"]
    days = usage(running, by="day", since=first, until=after)
    assert [row["group"] for row in days["rows"]] == [first, second]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            {"by": "color"},
            "by must be one of all, key, team, model, upstream, session, day, hour, not 'color'",
        ),
        ({"since": "yesterday"}, "since must be a time ago such as 24h or 7d, or a date"),
        ({"since": "nan"}, "since must be a time ago"),
        ({"since": "1d", "until": "2d"}, "until must be later than since"),
        ({"over": "week"}, "over must be one of day, hour, not 'week'"),
        ({"over": "hour", "since": "90d"}, "over=hour gives more than 1000 points"),
        ({"order": "x"}, "order must be one of cost"),
        ({"limit": "many"}, "limit must be a number, not 'many'"),
        ({"key": "k" * 2000}, "key is too long"),
    ],
)
def test_an_invalid_parameter_is_reported(running: Gateway, asked: dict[str, Any], said: str) -> None:
    got = call(f"{running.url}/usage?{urlencode(asked)}")
    assert got.status == 400
    assert said in got.json["error"]["message"]


def test_usage_needs_the_key(loop: Loop, upstream: ScriptedUpstream) -> None:
    toml = config(upstream.url).replace("retries = 0", 'keys = ["the-key"]')
    with gateway(toml, loop) as locked:
        assert call(f"{locked.url}/usage").status == 401
        assert call(f"{locked.url}/usage", x_api_key="the-key").status == 200


# The command


@pytest.fixture
def place(tmp_path: Path, loop: Loop) -> Path:
    """A folder with a config and a store that has some usage."""
    (tmp_path / "dragoman.toml").write_text('[server]\nstore = "own.db"\n[upstreams.anthropic]\n')
    now = time.time()
    receipts = [
        receipt(
            1, now - DAY, key="mara", model="opus", micros=1_500_000, input=20_000, cached=15_000, calls=2
        ),
        receipt(2, now - DAY, key="jonas", model="opus", micros=20_000, failed=1),
        receipt(3, now - DAY, key="jonas", model="local", micros=None, mended=1, calls=1),
        receipt(4, now - 60 * DAY, key="jonas", model="old", micros=1),
    ]
    store = open_store(tmp_path / "own.db")
    store.add_receipts(lambda: receipts).result()
    loop.run(store.close())
    return tmp_path


def run(place: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["usage", "--config", str(place / "dragoman.toml"), *options])


def words(line: str) -> str:
    return " ".join(line.split())


def test_a_table_without_a_gateway(place: Path) -> None:
    said = run(place, "--by", "key")
    assert said.exit_code == 0, said.output
    lines = said.output.splitlines()
    assert lines[0].startswith("by key, from ")
    assert words(lines[2]) == "key requests failed input cached output calls mended cost"
    assert words(lines[3]) == "mara 1 - 20.0k 75% 0 2 - $1.50"
    assert words(lines[4]) == "jonas 2 1 20 0% 0 1 1 $0.0200 + ?"
    assert words(lines[5]) == "total 3 1 20.0k 75% 0 3 1 $1.52 + ?"
    assert "The price of 1 request is unknown" in lines[-1]


def test_an_unknown_price_is_not_zero(place: Path) -> None:
    said = run(place, "--model", "local")
    assert "unknown" in said.output
    assert "$0" not in said.output


def test_csv_and_json(place: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run(place, "--csv").output)))
    assert [(row["model"], row["cost"], row["unpriced"]) for row in rows] == [
        ("opus", "1.52", "0"),
        ("local", "", "1"),
    ]
    found = json.loads(run(place, "--json", "--since", "90d", "--by", "day").output)
    assert (found["by"], found["total"]["requests"], len(found["rows"])) == ("day", 4, 2)


def test_csv_has_all_rows_and_no_formulas(place: Path, loop: Loop) -> None:
    store = open_store(place / "own.db")
    sessions = [receipt(9 + n, time.time(), session=f"{n:05}") for n in range(10_050)]
    store.add_receipts(lambda: [*sessions, receipt(5, time.time(), model='=HYPERLINK("x")')]).result()
    loop.run(store.close())
    assert len(run(place, "--csv", "--by", "session").output.splitlines()) > 10_050
    rows = list(csv.DictReader(io.StringIO(run(place, "--csv").output)))
    assert '\'=HYPERLINK("x")' in {row["model"] for row in rows}


def test_fewer_rows(place: Path) -> None:
    said = run(place, "--since", "90d", "--limit", "1")
    assert "2 more rows are left out" in said.output
    assert "total" in said.output
    assert "No requests in this time." in run(place, "--model", "nobody").output
    assert "from 1970-01-01 00:00" in run(place, "--since", "9999w").output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--since", "soon"], "'soon' is no time: write 30m, 2h, 7d or a date"),
        (["--since", "1d", "--until", "2d"], "--until must be later than since"),
        (["--csv", "--json"], "--csv and --json exclude each other"),
        (["--by", "mood"], "'mood' is not one of"),
    ],
)
def test_wrong_options(place: Path, options: list[str], said: str) -> None:
    got = run(place, *options)
    assert got.exit_code == 2
    assert said in got.output


def test_no_store_yet(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text('[server]\nstore = "own.db"\n[upstreams.anthropic]\n')
    said = run(tmp_path)
    assert said.exit_code == 1
    assert "there is no store at" in said.output
    assert not (tmp_path / "own.db").exists()
