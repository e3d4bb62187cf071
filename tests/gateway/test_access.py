"""Access control: keys, hosts, origins, sizes; and keys that never reach an upstream."""

import http.client
import json
import logging
from collections.abc import Iterator

import pytest
from support.gateways import Gateway, Loop, gateway
from support.plain_http import Got, call, post
from support.scripted_upstream import FOREVER, ScriptedUpstream, Wait, in_background, redirect, stream

from dragoman.config import ConfigError, loads, with_server
from dragoman.config.types import ServerConfig
from dragoman.gateway.guard import host_allowed, origin_allowed

KEYS = {"GATE": "gate-key-1234567890", "UPSTREAM": "upstream-key-1234567890"}
CHAT = {"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}
MESSAGES = {**CHAT, "max_tokens": 100}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}
PATHS = {
    "/v1/messages": MESSAGES,
    "/v1/chat/completions": CHAT,
    "/v1/responses": {"model": "demo", "input": "Hello"},
    "/v1beta/models/demo:generateContent": GEMINI,
}
SMALL_BODY = 2000


def config(upstream: ScriptedUpstream, server: str = "", credential: str = "env:UPSTREAM") -> str:
    return f"""
        [server]
        max_body = {SMALL_BODY}
        retries = 0
        {server}
        [upstreams.up]
        protocol = "openai-chat"
        base_url = "{upstream.url}"
        credential = "{credential}"
    """


@pytest.fixture
def locked(loop: Loop, upstream: ScriptedUpstream) -> Iterator[Gateway]:
    with gateway(config(upstream, 'keys = ["env:GATE", "second-key"]'), loop, KEYS) as served:
        yield served


def error_message(got: Got) -> str:
    return got.json["error"]["message"]


def error_type(got: Got) -> str:
    return got.json["error"].get("type") or got.json["error"]["status"]


# Keys


@pytest.mark.parametrize("key", [KEYS["GATE"], "second-key"])
@pytest.mark.parametrize(
    "header", ["x_api_key", "x_goog_api_key", "api_key", "authorization", "Authorization"]
)
def test_a_key_is_accepted_in_any_header(header: str, key: str, locked: Gateway) -> None:
    value = f"Bearer {key}" if header.lower() == "authorization" else key
    assert post(f"{locked.url}/v1/messages", MESSAGES, **{header: value}).status == 200


def test_a_key_removed_from_the_config_is_refused(
    locked: Gateway, loop: Loop, upstream: ScriptedUpstream
) -> None:
    connection = http.client.HTTPConnection(locked.url.partition("//")[2])

    def asked() -> int:
        connection.request("POST", "/v1/messages", json.dumps(MESSAGES), {"x-api-key": "second-key"})
        answer = connection.getresponse()
        answer.read()
        return answer.status

    async def reload(server: str) -> None:
        locked.state.replace(loads(config(upstream, server), env=KEYS))

    assert [asked(), asked(), asked()] == [200, 200, 200]
    loop.run(reload('keys = ["env:GATE"]'))
    assert [asked(), asked()] == [401, 401]
    loop.run(reload('keys = ["second-key"]'))
    assert [asked(), asked()] == [200, 200]
    connection.close()


def test_each_request_of_a_connection_needs_a_key(locked: Gateway) -> None:
    connection = http.client.HTTPConnection(locked.url.partition("//")[2])

    def asked(**headers: str) -> int:
        connection.request("POST", "/v1/messages", json.dumps(MESSAGES), headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status

    good, bad = {"api-key": "second-key"}, {"api-key": "second-kez"}
    statuses = [asked(**headers) for headers in (good, bad, good, {}, good)]
    assert statuses == [200, 401, 200, 401, 200]
    connection.close()


def test_a_key_is_accepted_in_the_query_and_beside_a_wrong_one(locked: Gateway) -> None:
    assert post(f"{locked.url}/v1beta/models/demo:generateContent?key=second-key", GEMINI).status == 200
    both = {"x_api_key": "dummy", "authorization": f"bearer {KEYS['GATE']}"}
    assert post(f"{locked.url}/v1/messages", MESSAGES, **both).status == 200


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/messages", "authentication_error"),
        ("/v1/chat/completions", "authentication_error"),
        ("/v1/responses", "authentication_error"),
        ("/v1beta/models/demo:generateContent", "UNAUTHENTICATED"),
    ],
)
@pytest.mark.parametrize(
    "headers", [{}, {"x_api_key": "wrong"}, {"authorization": "Basic gate-key-1234567890"}]
)
def test_a_wrong_key_is_an_error_in_the_clients_protocol(
    path: str, kind: str, headers: dict[str, str], locked: Gateway, upstream: ScriptedUpstream
) -> None:
    got = post(locked.url + path, PATHS[path], **headers)
    assert got.status == 401
    assert error_type(got) == kind
    assert "server.keys" in error_message(got)
    assert got.headers["x-dragoman-exchange"]
    assert upstream.seen == []


@pytest.mark.parametrize("path", ["/metrics", "/v1/models", "/v1beta/models/demo", "/nowhere"])
def test_every_other_path_needs_a_key(path: str, locked: Gateway) -> None:
    assert call(locked.url + path).status == 401
    assert call(locked.url + path, x_api_key="second-key").status in (200, 404)


def test_healthz_needs_no_key(locked: Gateway) -> None:
    assert [
        call(locked.url + path).status for path in ("/", "/healthz", "/livez", "/readyz", "/api/hello")
    ] == [200] * 5


def test_a_public_host_needs_keys() -> None:
    text = '[upstreams.up]\nprotocol = "gemini"\nbase_url = "http://h"\n'
    with pytest.raises(ConfigError, match="keys"):
        loads('[server]\nhost = "0.0.0.0"\n' + text)
    with pytest.raises(ConfigError, match="keys"):
        with_server(loads(text), host="192.168.0.7")


# Hosts and pages


@pytest.mark.parametrize(
    "host", ["127.0.0.1:1", "localhost", "LOCALHOST:80", "[::1]:4545", "::1", "a.localhost"]
)
def test_loopback_host_headers_are_accepted(host: str, locked: Gateway) -> None:
    assert call(f"{locked.url}/healthz", host=host).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:4545", "127.0.0.1.evil.example", "", "10.0.0.1"]
)
@pytest.mark.parametrize("path", ["/healthz", "/v1/messages"])
def test_a_foreign_host_header_is_refused(host: str, path: str, locked: Gateway) -> None:
    got = post(locked.url + path, {}, host=host, x_api_key="second-key")
    assert got.status == 403
    assert "server.allowed_hosts" in error_message(got)


def test_hosts_may_be_allowed() -> None:
    server = ServerConfig(allowed_hosts=("gate.lan", "other.lan:8080"))
    good = ("gate.lan", "gate.lan:4545", "GATE.lan", "other.lan:8080", "127.0.0.1")
    assert all(host_allowed(host, server) for host in good)
    assert not any(host_allowed(host, server) for host in ("other.lan", "xgate.lan", "gate.lan.evil"))


def test_a_public_gateway_accepts_any_host_unless_allowed_hosts_is_set() -> None:
    assert host_allowed("anything.example", ServerConfig(host="0.0.0.0"))
    named = ServerConfig(host="0.0.0.0", allowed_hosts=("gate.example",))
    assert host_allowed("gate.example", named)
    assert host_allowed("10.1.2.3:4545", named)  # a health probe: an IP address cannot be rebound
    assert not host_allowed("evil.example", named)


@pytest.mark.parametrize(
    ("origin", "good"),
    [
        (None, True),
        ("http://localhost:3000", True),
        ("http://[::1]:3000", True),
        ("vscode-webview://abc", True),
        ("https://evil.example", False),
        ("HTTPS://evil.example", False),
        ("null", False),
        ("", False),
    ],
)
def test_pages_of_other_sites_are_refused(origin: str | None, good: bool) -> None:
    assert origin_allowed(origin, ServerConfig()) is good


def test_a_page_with_a_key_is_accepted(loop: Loop, locked: Gateway) -> None:
    got = post(f"{locked.url}/v1/messages", MESSAGES, origin="https://my.example", x_api_key="second-key")
    assert got.status == 200
    assert [name for name in got.headers if name.startswith("access-control")] == []


# Sizes


@pytest.mark.parametrize("path", [*PATHS, "/v1/messages/count_tokens", "/v1beta/models/demo:countTokens"])
def test_an_oversized_body_is_refused(path: str, loop: Loop, upstream: ScriptedUpstream) -> None:
    with gateway(config(upstream), loop, KEYS) as served:
        got = post(served.url + path, b" " * (SMALL_BODY + 1))
        assert got.status == 413
        assert "server.max_body" in error_message(got)
        assert upstream.seen == []


def test_concurrent_answers_are_limited(loop: Loop, upstream: ScriptedUpstream) -> None:
    upstream.script(stream(Wait(FOREVER)))
    with gateway(config(upstream, "max_streams = 1"), loop, KEYS) as served:
        waiting = loop.begin(served.ask("/v1/chat/completions", {**CHAT, "stream": True}))
        loop.run(upstream.wait_seen())
        for path, body in PATHS.items():
            got = post(served.url + path, body)
            assert got.status == 529
            assert "server.max_streams" in error_message(got)
            assert got.headers["retry-after"] == "1"
        assert call(f"{served.url}/healthz").json["streams"] == 1
        waiting.cancel()
        assert upstream.last.closed.wait(2)
        assert post(f"{served.url}/v1/messages", MESSAGES).status == 200


# Where keys go


def test_the_upstream_gets_its_key_and_never_the_gateways(
    locked: Gateway, upstream: ScriptedUpstream
) -> None:
    assert post(f"{locked.url}/v1/messages", MESSAGES, x_api_key="second-key").status == 200
    assert upstream.last.key == KEYS["UPSTREAM"]
    assert "second-key" not in str(upstream.last.headers)


def test_a_clients_key_is_passed_on_but_never_the_gateways(loop: Loop, upstream: ScriptedUpstream) -> None:
    text = config(upstream, 'keys = ["env:GATE"]', "client")
    with gateway(text, loop, KEYS) as served:
        got = post(f"{served.url}/v1/messages", MESSAGES, x_api_key=KEYS["GATE"], authorization="Bearer mine")
        assert (got.status, upstream.last.key) == (200, "mine")
        got = post(f"{served.url}/v1/messages", MESSAGES, x_api_key=KEYS["GATE"])
        assert (got.status, error_type(got)) == (401, "authentication_error")
        assert len(upstream.seen) == 1


@pytest.mark.parametrize("path", PATHS)
def test_a_redirect_is_an_error_and_gets_no_key(path: str, loop: Loop, upstream: ScriptedUpstream) -> None:
    with in_background() as elsewhere, gateway(config(upstream), loop, KEYS) as served:
        upstream.script(*[redirect(f"{elsewhere.url}/v1/chat/completions", code) for code in (301, 307, 308)])
        for _ in range(3):
            got = post(served.url + path, PATHS[path])
            assert got.status == 502
            assert "redirect" in error_message(got).lower()
        assert elsewhere.seen == []


def test_secrets_are_in_no_log_and_no_answer(
    loop: Loop, upstream: ScriptedUpstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    upstream.keys = {"another"}
    with gateway(config(upstream, 'keys = ["env:GATE"]'), loop, KEYS) as served:
        bodies: list[bytes] = []
        for path, body in PATHS.items():
            bodies.append(post(served.url + path, body, x_api_key=KEYS["GATE"]).body)
            bodies.append(post(served.url + path, body, x_api_key="my-wrong-key-123456").body)
            bodies.append(post(f"{served.url}{path}?key={KEYS['GATE']}", b"{").body)
        upstream.keys = {KEYS["UPSTREAM"]}
        assert post(f"{served.url}/v1/messages", MESSAGES, x_api_key=KEYS["GATE"]).status == 200
        bodies.append(call(f"{served.url}/metrics", x_api_key=KEYS["GATE"]).body)
    logged = caplog.text + "".join(str(vars(record)) for record in caplog.records)
    assert "chosen" in logged
    for secret in (*KEYS.values(), "my-wrong-key-123456"):
        assert secret not in logged
        assert secret.encode() not in b"".join(bodies)


def test_requests_of_one_connection_may_have_different_clients(
    loop: Loop, upstream: ScriptedUpstream
) -> None:
    """Parsed heads are cached. Another key or another length must not hit the cache."""
    with gateway(config(upstream, credential="client"), loop, KEYS) as served:
        connection = http.client.HTTPConnection(served.url.partition("//")[2])
        sent = [("first-key", 1), ("first-key", 300), ("second-key", 1), ("first-key", 5)]
        for key, words in sent:
            said = {**CHAT, "model": "up/demo", "messages": [{"role": "user", "content": "Hello " * words}]}
            body = json.dumps(said).encode()
            connection.request("POST", "/v1/chat/completions", body, {"authorization": f"Bearer {key}"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200
            id = answer.headers["x-dragoman-exchange"]
            shown = json.loads(call(f"{served.url}/exchanges/{id}/bytes").body)
            headers = shown["client_request"]["headers"]
            assert headers["content-length"] == str(len(body))
            assert headers["authorization"] == "[removed]"
        connection.close()
        assert [seen.key for seen in upstream.seen] == [key for key, _ in sent]
