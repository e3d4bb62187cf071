"""`/exchanges`: the list, one exchange, its bytes, and the live stream."""

import http.client
import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from support.gateways import Gateway, Loop, gateway
from support.plain_http import call, post
from support.scripted_upstream import STREAM, Cut, Reply, ScriptedUpstream, Wait, status

from dragoman.config import loads
from dragoman.observe.receipts import ledger
from dragoman.store import Receipt, StoreError

BASH = {
    "name": "Bash",
    "description": "Run a command.",
    "input_schema": {
        "type": "object",
        "properties": {"command": {"type": "string"}, "timeout": {"type": "integer"}},
        "required": ["command"],
    },
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "Bash", "arguments": ""}}
ARGUMENTS = ('{"comm', 'and": "ls", "time', 'out": "30"}')


def chat(*choices: dict[str, Any], **more: Any) -> bytes:
    said = [{"id": "c", "model": "m", "choices": [{"index": 0, **choice}]} for choice in choices]
    return b"".join(b"data: %s\n\n" % json.dumps(one | more).encode() for one in said)


CALLED = (
    chat({"delta": {"role": "assistant", "tool_calls": [{"index": 0, **CALL}]}}),
    *(
        chat({"delta": {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}})
        for piece in ARGUMENTS
    ),
    chat(
        {"delta": {}, "finish_reason": "tool_calls"},
        usage={"prompt_tokens": 20, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 5}},
    ),
    b"data: [DONE]\n\n",
)


ASKED = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "Hi"}]}
STREAMED = {**ASKED, "tools": [BASH], "stream": True}


def config(url: str, server: str = "") -> str:
    return f"""
        [server]
        retries = 0
        {server}
        [upstreams.up]
        protocol = "openai-chat"
        base_url = "{url}"
        credential = "none"
        [upstreams.spare]
        protocol = "openai-chat"
        base_url = "{url}"
        credential = "none"
        [[routes]]
        match = "two-*"
        to = ["up/*", "spare/*"]
        [[routes]]
        match = "*"
        to = "up/*"
    """


@pytest.fixture
def running(loop: Loop, upstream: ScriptedUpstream) -> Iterator[Gateway]:
    with gateway(config(upstream.url), loop) as served:
        yield served


def ask(running: Gateway, model: str = "m", **more: Any) -> str:
    """Send a request of an Anthropic client. Returns the exchange's id."""
    body = {**ASKED, "model": model, **more}
    return post(running.url + "/v1/messages", body).headers["x-dragoman-exchange"]


def listed(running: Gateway, **asked: Any) -> dict[str, Any]:
    got = call(f"{running.url}/exchanges?{urlencode(asked)}")
    assert got.status == 200, got.body
    return got.json


def ids(running: Gateway, **asked: Any) -> list[str]:
    return [said["id"] for said in listed(running, **asked)["exchanges"]]


def mended(running: Gateway, upstream: ScriptedUpstream, **more: Any) -> str:
    upstream.script(CALLED)
    return ask(running, tools=[BASH], stream=True, **more)


def test_the_summary_of_an_exchange(running: Gateway, upstream: ScriptedUpstream) -> None:
    id = mended(running, upstream)
    (said,) = listed(running)["exchanges"]
    times = {name: said.pop(name) for name in ("at", "seconds", "first_event")}
    assert 0 < times["first_event"] < times["seconds"]
    assert said.pop("bytes_in") == len(b"".join(CALLED))
    assert said.pop("bytes_out") > 0
    assert re.fullmatch("[0-9a-f]{16}", said.pop("session"))
    assert said.pop("opening") in ("", "Hi")  # only in the store, without secrets
    assert said == {
        "id": id,
        "client": "anthropic",
        "profile": "unknown",
        "model": "m",
        "target": "up/m",
        "upstream_protocol": "openai-chat",
        "provider": None,
        "stream": True,
        "outcome": "ok",
        "status": 200,
        "usage": {"input": 20, "output": 7, "cached_input": 5, "reasoning": 0, "cache_written": 0},
        "cost": None,
        "calls": 1,
        "mended": 1,
        "invalid": 0,
        "warnings": 0,
        "rules": ["number-as-text"],
        "error": None,
        "recorded": True,
        "key": "",
        "team": "",
    }


def test_a_receipt_has_each_call_before_and_after(running: Gateway, upstream: ScriptedUpstream) -> None:
    got = call(f"{running.url}/exchanges/{mended(running, upstream)}").json
    (said,) = got["calls"]
    assert said["before"] == "".join(ARGUMENTS)
    assert json.loads(said["after"]) == {"command": "ls", "timeout": 30}
    assert (said["complete"], said["valid"], said["dropped"], said["fragments"]) == (True, True, None, 3)
    assert [fix["rule"] for fix in said["fixes"]] == ["number-as-text"]
    assert said["fixes"][0]["reason"]
    assert 0 < said["started"] <= said["ended"] <= got["seconds"]
    (tried,) = got["attempts"]
    assert (tried["target"], tried["outcome"], tried["error"]) == ("up/m", "ok", None)


def test_the_store_gives_the_same_receipt(loop: Loop, upstream: ScriptedUpstream) -> None:
    with gateway(config(upstream.url, "ring = 0"), loop) as running:
        id = mended(running, upstream)
        before = call(f"{running.url}/exchanges/{id}").json
        loop.run(running.state.observed.ledger.close())
        after = call(f"{running.url}/exchanges/{id}").json
        assert before == after
        assert after["calls"][0]["fixes"]
        assert call(f"{running.url}/exchanges/{id}/bytes").status == 404
        assert ids(running) == [id]
        assert not listed(running)["exchanges"][0]["recorded"]


def test_long_arguments_are_kept_short(loop: Loop, upstream: ScriptedUpstream) -> None:
    long = json.dumps({"command": "x" * 10_000})
    answer = {"index": 0, "function": {"arguments": long}}
    with gateway(config(upstream.url, "ring = 0"), loop) as running:
        upstream.script([CALLED[0], chat({"delta": {"tool_calls": [answer]}}), *CALLED[4:]])
        id = ask(running, tools=[BASH], stream=True)
        loop.run(running.state.observed.ledger.close())
        (said,) = call(f"{running.url}/exchanges/{id}").json["calls"]
        assert said["before"] == long[:4096]
        assert said["shortened"]


@pytest.mark.parametrize(
    ("model", "rules"),
    [
        ("demo-miscased", ["tool-name"]),
        ("demo-leak", ["call-in-text"]),
    ],
)
def test_rules_that_drop_or_rename_calls_are_listed(running: Gateway, model: str, rules: list[str]) -> None:
    tools = [{**BASH, "name": "Bash"}]
    message = {"role": "user", "content": "Run the command ls -la"}
    id = ask(running, model, tools=tools, messages=[message], stream=True)
    (said,) = listed(running)["exchanges"]
    assert said["rules"] == rules
    calls = call(f"{running.url}/exchanges/{id}").json["calls"]
    assert [rule for one in calls for rule in one["rules"]] == rules
    assert ids(running, rule=rules[0]) == [id]


@pytest.mark.parametrize("streamed", [True, False])
def test_dropped_end_tokens_are_listed(running: Gateway, upstream: ScriptedUpstream, streamed: bool) -> None:
    said = chat({"delta": {"content": "Done.<|im_"}}, {"delta": {"content": "end|>"}})
    upstream.script([said, chat({"delta": {}, "finish_reason": "stop"}), b"data: [DONE]\n\n"])
    got = call(f"{running.url}/exchanges/{ask(running, stream=streamed)}").json
    (notice,) = got["notices"]
    assert (notice["rule"], notice["path"]) == ("end-tokens-dropped", "answer")
    assert notice["message"].startswith("<|im_end|> ")
    assert got["warnings"] == 1


PRICES = """
[prices]
"up/*" = { input = 1e6, output = 0 }
"spare/m-*" = { input = 1, output = 1 }
"""


def test_costs_are_those_of_the_day(loop: Loop, upstream: ScriptedUpstream) -> None:
    with gateway(config(upstream.url, "ring = 0") + PRICES, loop) as running:
        id = mended(running, upstream)
        assert listed(running)["exchanges"][0]["cost"] == 20
        loop.run(running.state.observed.ledger.close())
        running.state.replace(loads(config(upstream.url) + PRICES.replace("1e6", "7e6")))
        assert call(f"{running.url}/exchanges/{id}").json["cost"] == 20
        assert listed(running)["exchanges"][0]["cost"] == 20


def test_every_attempt_costs(loop: Loop, upstream: ScriptedUpstream) -> None:
    with gateway(config(upstream.url) + PRICES, loop) as running:
        # Usage and no content, then an error: another target may still answer, and both are paid.
        counted = b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}\n\n'
        broken = [counted, b'data: {"error":{"message":"down","code":503}}\n\n']
        upstream.script(broken, CALLED)
        id = ask(running, "two-m", tools=[BASH], stream=True)
        got = call(f"{running.url}/exchanges/{id}").json
        assert [one["outcome"] for one in got["attempts"]][1:] == ["ok"]
        assert got["cost"] is None  # the second target has no price
        upstream.script(broken, CALLED)
        assert call(f"{running.url}/exchanges/{ask(running, stream=True)}").json["cost"] == 3


@pytest.mark.parametrize(
    ("answer", "cost"),
    [
        (status(503, b"{}"), 0),  # nothing was generated
        ([CALLED[0], *CALLED[1:-2], b"data: [DONE]\n\n"], None),  # an answer without token counts
    ],
)
def test_what_an_exchange_without_counts_cost(
    loop: Loop, upstream: ScriptedUpstream, answer: Any, cost: float | None
) -> None:
    with gateway(config(upstream.url) + PRICES, loop) as running:
        upstream.script(answer)
        ask(running, tools=[BASH], stream=True)
        assert listed(running)["exchanges"][0]["cost"] == cost


def test_the_turns_of_a_conversation_have_one_session(running: Gateway) -> None:
    first, other = {"role": "user", "content": "one"}, {"role": "user", "content": "two"}
    answer = {"role": "assistant", "content": "yes"}
    for messages in ([first], [first, answer, other], [other]):
        ask(running, "demo", messages=messages)
    third, second, one = [entry["session"] for entry in listed(running)["exchanges"]]
    assert one == second != third
    assert len(one) == 16
    assert int(one, 16)


def test_every_attempt_is_listed(running: Gateway, upstream: ScriptedUpstream) -> None:
    upstream.script(status(503, b'{"error":{"message":"down"}}'), CALLED)
    got = call(f"{running.url}/exchanges/{ask(running, 'two-m', tools=[BASH])}").json
    first, second = got["attempts"]
    assert (first["target"], first["outcome"], first["error"]) == ("up/two-m", "overloaded", "down")
    assert (second["target"], second["outcome"]) == ("spare/two-m", "ok")
    assert (got["target"], got["outcome"], got["error"]) == ("spare/two-m", "ok", None)


def test_a_failed_exchange_is_listed(running: Gateway, upstream: ScriptedUpstream) -> None:
    upstream.script(status(400, b'{"error":{"message":"too clever"}}'))
    ask(running)
    (said,) = listed(running)["exchanges"]
    assert (said["outcome"], said["status"], said["error"]) == ("invalid_request", 400, "too clever")


def test_an_unreadable_request_is_listed(running: Gateway) -> None:
    post(running.url + "/v1/messages", b"{nonsense")
    (said,) = listed(running)["exchanges"]
    assert (said["outcome"], said["status"], said["target"]) == ("invalid_request", 400, None)


def test_the_bytes_of_both_sides(running: Gateway, upstream: ScriptedUpstream) -> None:
    got = call(f"{running.url}/exchanges/{mended(running, upstream)}/bytes").json
    asked = got["client_request"]
    assert (asked["method"], asked["path"]) == ("POST", "/v1/messages")
    assert json.loads(asked["body"])["tools"] == [BASH]
    (sent,) = got["upstream_requests"]
    assert (sent["attempt"], sent["url"]) == (1, upstream.url + "/v1/chat/completions")
    received = upstream.seen[-1].headers
    assert sent["headers"]["user-agent"].startswith("dragoman/")
    assert {name: received[name] for name in sent["headers"]} == sent["headers"]
    assert json.loads(sent["body"])["tools"][0]["function"]["name"] == "Bash"
    assert "".join(chunk["text"] for chunk in got["upstream"]).encode() == b"".join(CALLED)
    assert "".join(chunk["text"] for chunk in got["client"]).endswith('{"type":"message_stop"}\n\n')
    times = [chunk["t"] for chunk in got["upstream"]]
    assert times == sorted(times)
    assert got["dropped"] == 0


def test_bytes_that_are_not_utf8(running: Gateway, upstream: ScriptedUpstream) -> None:
    upstream.script([b"data: \xff\xfe\n\n"])
    got = call(f"{running.url}/exchanges/{ask(running)}/bytes").json
    assert [set(chunk) for chunk in got["upstream"]] == [{"t", "attempt", "base64"}]


def test_a_character_split_over_two_chunks(running: Gateway, upstream: ScriptedUpstream) -> None:
    whole = chat({"delta": {"content": "5 €"}}, {"delta": {}, "finish_reason": "stop"})
    middle = whole.index(b"\\u20ac")
    whole = whole.replace(b"\\u20ac", "€".encode())
    upstream.pace = 1
    upstream.script([whole[: middle + 1], Wait(0.05), whole[middle + 1 :]])
    got = call(f"{running.url}/exchanges/{ask(running)}/bytes").json
    assert "".join(chunk["text"] for chunk in got["upstream"]).encode() == whole


def test_filters(running: Gateway, upstream: ScriptedUpstream) -> None:
    good = mended(running, upstream, model="good-1")
    upstream.script(status(429, b'{"error":{"message":"slow down"}}'))
    bad = ask(running, "bad-1")
    in_chat = post(running.url + "/v1/chat/completions", {"model": "demo", "messages": []})
    other = in_chat.headers["x-dragoman-exchange"]
    for _ in range(2):  # from memory, then from the store
        assert ids(running) == [other, bad, good]
        assert ids(running, client="anthropic") == [bad, good]
        assert ids(running, model="good-1") == ids(running, model="g*d-?") == [good]
        assert ids(running, status=429) == ids(running, status="rate_limit") == [bad]
        assert ids(running, rule="number-as-text") == ids(running, mended=1) == [good]
        assert bad in ids(running, failed=1)
        assert good not in ids(running, failed="true")
        assert ids(running, slow=60) == []
        assert ids(running, q="SLOW bad-1") == ids(running, q=bad) == [bad]
        assert ids(running, profile="nobody") == []
        at = {said["id"]: said["at"] for said in listed(running)["exchanges"]}
        assert ids(running, since=at[bad]) == [other, bad]
        assert ids(running, before=at[bad]) == [good]
        running.loop.run(running.state.observed.ledger.close())
        running.state.observed.tap.ring.resize(0)


def test_pages(running: Gateway, upstream: ScriptedUpstream) -> None:
    made = [ask(running, "demo") for _ in range(5)]
    for _ in range(2):
        found: list[str] = []
        cursor = ""
        while cursor is not None:
            page = listed(running, limit=2, cursor=cursor)
            assert len(page["exchanges"]) <= 2
            found += [said["id"] for said in page["exchanges"]]
            cursor = page["next"]
        assert found == made[::-1]
        running.loop.run(running.state.observed.ledger.close())


@pytest.mark.parametrize("asked", ["limit=many", "since=nan", "failed=perhaps", "cursor=@@", "cursor=YQ"])
def test_an_invalid_query_is_refused(running: Gateway, asked: str) -> None:
    got = call(f"{running.url}/exchanges?{asked}")
    assert got.status == 400
    assert asked.partition("=")[0] in got.json["error"]["message"]


def test_unknown_exchanges(running: Gateway) -> None:
    for path in ("", "/bytes"):
        got = call(f"{running.url}/exchanges/nothing{path}")
        assert got.status == 404
        assert "nothing" in got.json["error"]["message"]


def test_the_oldest_bytes_are_dropped_first(loop: Loop, upstream: ScriptedUpstream) -> None:
    with gateway(config(upstream.url, 'ring = "20KB"'), loop) as running:
        made = [ask(running, "demo", system="x" * 3000) for _ in range(6)]
        here = {said["id"]: said["recorded"] for said in listed(running)["exchanges"]}
        kept = [here[id] for id in made]
        assert kept == sorted(kept)
        assert kept[-1]
        assert not kept[0]
        assert running.state.observed.tap.ring.size <= 20_000


def test_a_key_is_required(loop: Loop, upstream: ScriptedUpstream) -> None:
    with gateway(config(upstream.url, 'keys = ["a-long-key-of-ours"]'), loop) as running:
        for path in ("", "/live", "/x", "/x/bytes"):
            assert call(f"{running.url}/exchanges{path}").status == 401
        assert call(f"{running.url}/exchanges", x_api_key="a-long-key-of-ours").status == 200


class Live:
    """A reader of `/exchanges/live`."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
        self._connection.request("GET", "/exchanges/live")
        self._response = self._connection.getresponse()
        assert self._response.headers["content-type"] == "text/event-stream"

    def until(self, outcome: str) -> list[dict[str, Any]]:
        """The summaries up to the one with `outcome`."""
        found: list[dict[str, Any]] = []
        while not found or found[-1]["outcome"] != outcome:
            line = self._response.readline()
            assert line, "the stream is over"
            if line.startswith(b"data: "):
                found.append(json.loads(line[6:]))
        return found

    def rest(self) -> bytes:
        return self._response.read()

    def close(self) -> None:
        self._connection.close()


def test_the_live_stream_reports_exchanges(running: Gateway, upstream: ScriptedUpstream) -> None:
    live = Live(running.url)
    try:
        upstream.pace = 1
        upstream.script([Wait(0.5), CALLED[0], CALLED[1], Wait(0.7), *CALLED[2:]])
        under_way = running.loop.begin(running.ask("/v1/messages", STREAMED))
        seen = live.until("ok")
        under_way.result(10)
        assert {said["id"] for said in seen} == {seen[0]["id"]}
        assert [said["outcome"] for said in seen[:-1]] == ["running"] * (len(seen) - 1)
        assert seen[0]["first_event"] is None
        assert any(said["first_event"] is not None for said in seen[:-1]), "reported before the end"
        assert seen[-1]["mended"] == 1
    finally:
        live.close()


def test_a_running_exchange_is_listed(running: Gateway, upstream: ScriptedUpstream) -> None:
    live = Live(running.url)
    try:
        upstream.pace = 1
        upstream.script(Reply(steps=(*CALLED[:2], Wait(30), Cut()), content_type=STREAM))
        under_way = running.loop.begin(running.ask("/v1/messages", STREAMED))
        id = live.until("running")[0]["id"]
        (said,) = listed(running)["exchanges"]
        assert (said["id"], said["outcome"], said["status"]) == (id, "running", 0)
        assert call(f"{running.url}/exchanges/{id}").json["attempts"][0]["outcome"] == "running"
        under_way.cancel()
        assert live.until("cancelled")[-1]["status"] == 499
    finally:
        live.close()


def test_live_readers_do_not_delay_the_stop(loop: Loop, upstream: ScriptedUpstream) -> None:
    with gateway(config(upstream.url), loop) as running:
        live = Live(running.url)
    try:
        assert live.rest() == b": exchanges, as they happen\n\n", "the stream ends, it does not break off"
    finally:
        live.close()


def test_a_failing_store_is_logged_once(
    loop: Loop, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gateway(config(upstream.url), loop) as running:

        def full(receipts: object) -> Future[None]:
            failed: Future[None] = Future()
            failed.set_exception(StoreError("the disk is full"))
            return failed

        monkeypatch.setattr(logging.getLogger("dragoman"), "propagate", True)
        with monkeypatch.context() as patched:
            patched.setattr(running.state.store, "add_receipts", full)
            for _ in range(3):
                ask(running, "demo")
                loop.run(running.state.observed.ledger.close())
        said = [record.getMessage() for record in caplog.records if "receipts" in record.getMessage()]
        assert said == ["receipts are lost: the disk is full"]
        id = ask(running, "demo")
        loop.run(running.state.observed.ledger.close())
        running.state.observed.tap.ring.resize(0)
        assert ids(running) == [id], "dropped messages are lost, later ones are kept"


def test_waiting_receipts_are_written_in_one_batch(
    loop: Loop, upstream: ScriptedUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_BATCH_SECONDS", 60.0)
    with gateway(config(upstream.url), loop) as running:
        written: list[int] = []
        add = running.state.store.add_receipts

        def counted(receipts: Callable[[], Sequence[Receipt]]) -> Future[None]:
            made = receipts()
            written.append(len(made))
            return add(lambda: made)

        monkeypatch.setattr(running.state.store, "add_receipts", counted)
        made = [ask(running, "demo") for _ in range(5)]
        assert ids(running) == made[::-1], "receipts are listed before they are written"
        loop.run(running.state.observed.ledger.close())
        assert written == [5]
        assert ids(running) == made[::-1]


def test_an_upstreams_error_keeps_its_members_without_the_key(
    loop: Loop, upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("sk-up-0123456789")
    error = {"message": "no: Bearer sk-up-0123456789", "code": 401, "metadata": {"raw": "sk-up-0123456789"}}
    refused = [b"data: %b\n\n" % json.dumps({"error": error, "user_id": "u_1"}).encode()]
    upstream.script(*[refused] * 4)  # the key is read again, and each target has its turn
    keyed = config(upstream.url).replace('credential = "none"', f'credential = "file:{tmp_path}/key"', 1)
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True}
    with gateway(keyed, loop) as running:
        got = post(running.url + "/v1/chat/completions", body)
    assert b'"user_id":"u_1"' in got.body
    assert b'"metadata"' in got.body
    assert b"0123456789" not in got.body
