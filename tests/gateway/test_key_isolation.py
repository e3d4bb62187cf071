"""What one key may see of another: nothing, at every route of the app."""

import base64
import http.client
import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from support.gateways import Gateway, Loop, gateway
from support.plain_http import Got, call, post
from support.scripted_upstream import ScriptedUpstream

from dragoman.gateway.app import routes
from dragoman.gateway.endpoints import live_feed
from dragoman.transport.server import HttpAnswer, HttpRequest, NotFound

ADMIN, ALICE, BOB, DAVE = "admin-secret-1234", "alice-secret-1234", "bob-secret-12345", "dave-secret-1234"
PLUM = "PLUM-7 is what Alice asked"
"""Alice's words. The scripted model repeats them in its answer."""
CONFIG = """
    [server]
    keys = ["{admin}"]
    retries = 0
    [upstreams.up]
    protocol = "openai-chat"
    base_url = "{url}"
    credential = "none"
    other_endpoints = ["files", "batches"]
    models = ["shared-model", "alice-model", "bob-model"]
    [keys.alice]
    secret = "{alice}"
    models = ["shared-*", "alice-*"]
    team = "fruit"
    [keys.bob]
    secret = "{bob}"
    models = ["shared-*", "bob-*"]
    [keys.dave]
    secret = "{dave}"
"""

# A new route must be put into one of these, or answer 403 or 404 to Bob.
OPEN = {"/", "/api/hello", "/healthz", "/livez", "/readyz", "/inspector", "/inspector/", "/inspector/{file}"}
"""Say nothing about anybody."""
OWN_LISTS = re.compile(r"/exchanges|/sessions|/usage|(/\w+)*/models")
"""Give a list of what is Bob's."""
HANDSHAKES = {"/v1/responses", "/responses"}
"""A GET opens a WebSocket; each message is a request by itself."""
TESTED_BELOW = {"/exchanges/live"}


@pytest.fixture
def served(loop: Loop, upstream: ScriptedUpstream) -> Iterator[Gateway]:
    text = CONFIG.format(url=upstream.url, admin=ADMIN, alice=ALICE, bob=BOB, dave=DAVE)
    with gateway(text, loop) as served:
        yield served


def ask(served: Gateway, key: str, words: str = "Hello", model: str = "shared-model", **more: Any) -> Got:
    body = {"model": model, "messages": [{"role": "user", "content": words}], **more}
    return post(f"{served.url}/v1/chat/completions", body, x_api_key=key)


def shown(served: Gateway, key: str, path: str) -> Got:
    return call(served.url + path, x_api_key=key)


def all_routes(served: Gateway) -> list[tuple[str, str]]:
    async def answer(request: HttpRequest) -> HttpAnswer:
        raise NotFound

    return [(route.method, route.path) for route in routes(served.state, answer)]


def filled(path: str, exchange: str) -> str:
    """A path that matches the route, about Alice's exchange and Alice's model."""
    values = {"id": exchange, "model": "alice-model", "action": "generateContent", "file": "index.html"}

    def value(part: re.Match[str]) -> str:
        """What Alice uses, else the first alternative of the route's pattern."""
        return values.get(part[1]) or (part[2] or ":any")[1:].partition("|")[0]

    return re.sub(r"\{(\w+)(:[^{}]+)?\}", value, path)


ASKED: dict[str, Any] = {
    "model": "alice-model",
    "messages": [{"role": "user", "content": "?"}],
    "input": "?",
    "contents": [{"parts": [{"text": "?"}]}],
    "max_tokens": 10,
}


def everywhere(served: Gateway, key: str, exchange: str, session: str) -> Iterator[tuple[str, str, Got]]:
    """The answer of every route to `key`. None of them may say anything of Alice."""
    for method, path in all_routes(served):
        if path in TESTED_BELOW:
            continue
        url = served.url + filled(path, session if "sessions" in path else exchange)
        sent = {name: value for name, value in ASKED.items() if name != "input" or "cursor" not in path}
        if path.endswith("}/count-tokens"):  # AWS's CountTokens has the request inside
            inner = base64.b64encode(json.dumps(ASKED).encode()).decode()
            sent["input"] = {"invokeModel": {"body": inner}}
        for query in ("", "?key=alice&team=fruit&session=" + session):
            got = call(url + query, method, sent if method == "POST" else None, x_api_key=key)
            for mark in ("PLUM", "alice-secret", '"alice"', "fruit"):
                assert mark not in got.body.decode(), (method, path, mark)
            if not query:
                yield method, path, got


def test_no_route_gives_bob_anything_of_alice(served: Gateway, upstream: ScriptedUpstream) -> None:
    exchange = ask(served, ALICE, PLUM, "alice-model").headers["x-dragoman-exchange"]
    session = shown(served, ADMIN, f"/exchanges/{exchange}").json["session"]
    asked = len(upstream.seen)
    for method, path, got in everywhere(served, BOB, exchange, session):
        if path in OPEN:
            assert got.status in (200, 304, 308), path
        elif method == "GET" and OWN_LISTS.fullmatch(path):
            assert got.status == 200, path
            # Bob's own refused requests name the id that he asked for; none of the exchanges is Alice's.
            assert f'"id":"{exchange}"' not in got.body.decode(), path
            # Bob's own refused requests named a model of Alice.
            assert path in ("/exchanges", "/usage") or b"alice" not in got.body, path
        elif method == "GET" and path in HANDSHAKES:
            assert got.status == 426
        else:
            assert got.status in (403, 404), (method, path, got.body)
    # Bob's requests for a model of Alice never left the gateway; the list of models was asked for at most.
    assert [seen.path for seen in upstream.seen[asked:] if seen.method == "POST"] == []


def test_no_route_gives_anything_of_alice_to_a_key_that_may_use_every_model(served: Gateway) -> None:
    exchange = ask(served, ALICE, PLUM, "alice-model").headers["x-dragoman-exchange"]
    session = shown(served, ADMIN, f"/exchanges/{exchange}").json["session"]
    walked = 0
    for method, path, got in everywhere(served, DAVE, exchange, session):
        walked += 1
        if path.startswith(("/exchanges/{id}", "/sessions/{id}", "/metrics", "/scores")) or "/{id}" in path:
            assert got.status in (403, 404), (method, path, got.body)
        elif path in ("/exchanges", "/sessions", "/usage"):
            # Dave's own refused requests name the id that he asked for.
            assert f'"id":"{exchange}"' not in got.body.decode(), path
            assert f'"session":"{session}"' not in got.body.decode(), path
    assert walked > 50


def test_alice_and_the_admin_get_what_bob_does_not(served: Gateway) -> None:
    exchange = ask(served, ALICE, PLUM).headers["x-dragoman-exchange"]
    paths = [f"/exchanges/{exchange}{rest}" for rest in ("", "/bytes", "/recording")]
    for key, status in ((ALICE, 200), (ADMIN, 200), (BOB, 404)):
        assert [shown(served, key, path).status for path in paths] == [status] * 3
        replayed = call(f"{served.url}/exchanges/{exchange}/replay", "POST", {}, x_api_key=key)
        assert replayed.status == status
    assert "PLUM" in shown(served, ALICE, f"/exchanges/{exchange}/bytes").body.decode()
    told = shown(served, ADMIN, f"/exchanges/{exchange}").json
    assert (told["key"], told["team"]) == ("alice", "fruit")


def test_lists_hold_only_the_exchanges_of_the_key(served: Gateway, loop: Loop) -> None:
    by = {key: ask(served, key).headers["x-dragoman-exchange"] for key in (ALICE, BOB, ADMIN)}

    def listed(key: str, query: str = "") -> set[str]:
        return {entry["id"] for entry in shown(served, key, f"/exchanges{query}").json["exchanges"]}

    async def written() -> None:
        await served.state.observed.ledger.close()

    for _ in range(2):  # from memory, then from the store
        assert listed(ALICE) == {by[ALICE]}
        assert listed(BOB) == {by[BOB]}
        assert listed(ADMIN) == {*by.values()}
        assert listed(BOB, "?key=alice") == {by[BOB]}
        loop.run(written())


def test_a_refused_request_belongs_to_its_key_too(served: Gateway) -> None:
    got = ask(served, ALICE, model="bob-model")
    assert got.status == 403
    id = got.headers["x-dragoman-exchange"]
    assert shown(served, ALICE, f"/exchanges/{id}").json["key"] == "alice"
    assert shown(served, BOB, f"/exchanges/{id}").status == 404


@contextmanager
def feed(served: Gateway, key: str) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(urlsplit(served.url).netloc, timeout=10)
    connection.request("GET", "/exchanges/live", headers={"x-api-key": key})
    with closing(connection), connection.getresponse() as response:
        response.readline()
        yield response


def first(response: http.client.HTTPResponse) -> dict[str, Any]:
    while not (line := response.readline()).startswith(b"data:"):
        assert line
    return json.loads(line[5:])


def test_the_live_feed_shows_only_the_exchanges_of_the_key(served: Gateway) -> None:
    with feed(served, BOB) as bob, feed(served, ADMIN) as admin:
        alices = ask(served, ALICE, PLUM).headers["x-dragoman-exchange"]
        bobs = ask(served, BOB).headers["x-dragoman-exchange"]
        assert first(bob)["id"] == bobs
        assert first(admin)["id"] == alices


def test_the_live_feed_of_a_removed_key_ends(
    served: Gateway, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_feed, "_KEEPALIVE_INTERVAL", 0.2)

    async def remove() -> None:
        config = served.state.config
        left = {name: key for name, key in config.named_keys.items() if name != "bob"}
        served.state.replace(msgspec.structs.replace(config, named_keys=left))

    with feed(served, BOB) as bob:
        ask(served, BOB)
        assert first(bob)["key"] == "bob"
        loop.run(remove())
        ask(served, ALICE)
        ask(served, ADMIN)
        rest = bob.read()
        assert b'"key":"alice"' not in rest


def test_usage_is_that_of_the_key(served: Gateway, loop: Loop) -> None:
    for key, count in ((ALICE, 2), (BOB, 1), (ADMIN, 3)):
        for _ in range(count):
            ask(served, key)

    async def written() -> None:
        await served.state.observed.ledger.close()

    loop.run(written())

    def groups(key: str, query: str = "by=key") -> dict[str, int]:
        rows = shown(served, key, f"/usage?{query}").json["rows"]
        return {row["group"]: row["requests"] for row in rows}

    assert groups(BOB) == groups(BOB, "by=key&key=alice") == {"bob": 1}
    assert groups(BOB, "by=team") == {"": 1}
    assert groups(ALICE, "by=team&team=fruit") == {"fruit": 2}
    assert groups(ADMIN) == {"alice": 2, "bob": 1, "": 3}


def test_metrics_are_for_admins(served: Gateway) -> None:
    got = shown(served, BOB, "/metrics")
    assert got.status == 403
    assert "admin" in got.json["error"]["message"]
    assert shown(served, ADMIN, "/metrics").status == 200


def test_a_response_is_continued_only_by_its_key(served: Gateway) -> None:
    def respond(key: str, **more: Any) -> Got:
        return post(
            f"{served.url}/v1/responses", {"model": "shared-model", "input": PLUM, **more}, x_api_key=key
        )

    first = respond(ALICE).json
    assert respond(ALICE, previous_response_id=first["id"]).status == 200
    for key in (BOB, ADMIN):
        got = respond(key, previous_response_id=first["id"])
        assert got.status == 400
        assert got.json["error"]["code"] == "previous_response_not_found"
    reference = {"type": "item_reference", "id": first["output"][0]["id"]}
    assert respond(ALICE, input=[reference]).status == 200
    assert respond(BOB, input=[reference]).status == 400


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/messages", "permission_error"),
        ("/v1/messages/count_tokens", "permission_error"),
        ("/v1/chat/completions", "permission_error"),
        ("/v1/responses", "permission_error"),
        ("/v1beta/models/alice-model:generateContent", "PERMISSION_DENIED"),
        ("/v1beta/models/models/alice-model:generateContent", "PERMISSION_DENIED"),
        ("/v1beta/models/alice-model:countTokens", "PERMISSION_DENIED"),
    ],
)
def test_a_model_that_a_key_may_not_use(
    path: str, kind: str, served: Gateway, upstream: ScriptedUpstream
) -> None:
    said = [{"role": "user", "content": "Hello"}]
    body = {"model": "alice-model", "messages": said, "input": "Hello", "max_tokens": 10}
    gemini = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}
    got = post(served.url + path, gemini if "beta" in path else body, x_api_key=BOB)
    assert got.status == 403
    assert kind in (got.json["error"].get("type"), got.json["error"].get("status"))
    assert 'the key "bob" may not use the model' in got.json["error"]["message"]
    assert upstream.seen == []


def test_models_that_a_key_may_not_use_are_not_listed(served: Gateway) -> None:
    def names(key: str) -> set[str]:
        return {entry["id"] for entry in shown(served, key, "/v1/models").json["data"]}

    assert {"up/alice-model", "up/bob-model"} <= names(ADMIN)
    # The globs are about the names that clients write: `up/…` is another name of the same model.
    assert names(BOB) == {"shared-model", "bob-model"}
    assert shown(served, BOB, "/v1/models/alice-model").status == 403
    assert shown(served, BOB, "/v1/models/bob-model").status == 200


def test_the_name_of_an_upstream_does_not_bypass_the_models_of_a_key(served: Gateway) -> None:
    assert ask(served, BOB, model="up/alice-model").status == 403
    assert ask(served, BOB, model="bob-model").status == 200
