"""Every documented path and header, and errors in the client's own shape."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.gateways import Gateway, Loop, gateway
from support.plain_http import Got, call, post
from support.scripted_upstream import ScriptedUpstream, in_background, status
from support.wires import PROTOCOLS

from dragoman.gateway.app import App, routes

MANUAL = Path(__file__).parents[2] / "docs" / "reference" / "http.md"
ASKED: list[dict[str, Any]] = [{"role": "user", "content": "Hello"}]
MESSAGES = {"model": "demo", "max_tokens": 100, "messages": ASKED}
CHAT = {"model": "demo", "messages": ASKED}
IN_GEMINI = ("candidates", 0, "content", "parts", 0, "text")
RESPONSES = {"model": "demo", "input": "Hello"}
GEMINI = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with in_background() as served:
        yield served


@pytest.fixture(scope="module")
def running(loop: Loop, upstream: ScriptedUpstream) -> Iterator[Gateway]:
    config = "".join(
        f'[upstreams.{name}]\nprotocol = "{name}"\nbase_url = "{upstream.url}"\ncredential = "none"\n'
        for name in PROTOCOLS
    )
    config += """
        [aliases]
        favourite = "anthropic/demo"
        [[routes]]
        match = "demo*"
        to = "openai-chat/*"
    """
    with gateway(config, loop) as served:
        yield served


def answer_text(got: Got, *way: str | int) -> str:
    value = got.json
    for step in way:
        value = value[step]
    return value


ANSWERS = [
    ("/v1/messages", MESSAGES, ("content", 0, "text")),
    ("/v1/messages?beta=true", MESSAGES, ("content", 0, "text")),
    ("/messages", MESSAGES, ("content", 0, "text")),
    ("/v1/chat/completions", CHAT, ("choices", 0, "message", "content")),
    ("/chat/completions", CHAT, ("choices", 0, "message", "content")),
    ("/v1/responses", RESPONSES, ("output", 0, "content", 0, "text")),
    ("/responses", RESPONSES, ("output", 0, "content", 0, "text")),
    ("/v1beta/models/demo:generateContent", GEMINI, IN_GEMINI),
    ("/v1/models/demo:generateContent", GEMINI, IN_GEMINI),
    ("/v1alpha/models/demo:generateContent?key=k", GEMINI, IN_GEMINI),
    ("/v1beta/models/openai-chat/demo:generateContent", GEMINI, IN_GEMINI),
    ("/v1beta/models/openai-chat%2Fdemo:generateContent", GEMINI, IN_GEMINI),
]


@pytest.mark.parametrize(("path", "body", "way"), ANSWERS, ids=[path for path, *_ in ANSWERS])
def test_every_path_is_served(path: str, body: Any, way: tuple[str | int, ...], running: Gateway) -> None:
    got = post(running.url + path, body)
    assert got.status == 200, got.body
    assert "You said: “Hello”" in answer_text(got, *way)
    assert re.fullmatch("[0-9a-f]{16}", got.headers["x-dragoman-exchange"])
    assert "x-dragoman-warnings" not in got.headers


@pytest.mark.parametrize(
    ("path", "body", "end"),
    [
        ("/v1/messages", {**MESSAGES, "stream": True}, b"event: message_stop"),
        ("/v1/chat/completions", {**CHAT, "stream": True}, b"data: [DONE]"),
        ("/v1/responses", {**RESPONSES, "stream": True}, b"event: response.completed"),
        ("/v1beta/models/demo:streamGenerateContent?alt=sse", GEMINI, b'"finishReason":"STOP"'),
    ],
)
def test_streams(path: str, body: Any, end: bytes, running: Gateway) -> None:
    got = post(running.url + path, body)
    assert got.status == 200
    assert got.headers["content-type"].startswith("text/event-stream")
    assert got.headers["cache-control"] == "no-cache"
    assert got.headers["x-dragoman-exchange"]
    assert end in got.body


def test_dropped_parts_are_in_the_warnings_header(running: Gateway) -> None:
    got = post(f"{running.url}/v1/messages", {**MESSAGES, "top_k": 5})
    assert got.status == 200
    assert "top_k" in got.headers["x-dragoman-warnings"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["/", "/api/hello", "/healthz"])
def test_healthz_answers(method: str, path: str, running: Gateway) -> None:
    got = call(running.url + path, method)
    assert got.status == 200
    assert got.headers["x-dragoman-exchange"]


def test_healthz_counts_running_answers(running: Gateway) -> None:
    told = {"status": "ok", "streams": 0, "store": "ok", "receipts_lost": 0}
    assert call(f"{running.url}/healthz").json == told


@pytest.mark.parametrize("path", ["/v1/responses", "/responses"])
@pytest.mark.parametrize("headers", [{}, {"upgrade": "websocket", "connection": "Upgrade"}])
def test_a_get_without_a_websocket_handshake_gets_426(
    path: str, headers: dict[str, str], running: Gateway
) -> None:
    """A proxy may remove the handshake headers. Codex falls back to POST only after a 426."""
    got = call(running.url + path, **headers)
    assert got.status == 426
    assert got.headers["upgrade"] == "websocket"
    assert "POST" in got.json["error"]["message"]


# Errors


def error_type(got: Got) -> Any:
    error = got.json["error"]
    return error.get("type") or error.get("status")


@pytest.mark.parametrize(
    ("path", "headers", "kind"),
    [
        ("/v1/messages/batches", {}, "not_found_error"),
        ("/v1/files", {"anthropic_version": "2023-06-01"}, "not_found_error"),
        ("/v1/embeddings", {}, "not_found_error"),
        ("/v1/responses/resp_1", {}, "not_found_error"),
        ("/v1beta/cachedContents", {}, "NOT_FOUND"),
        ("/v1beta/models/demo:embedContent", {}, "NOT_FOUND"),
    ],
)
def test_an_unknown_path_is_an_error_in_the_callers_shape(
    path: str, headers: dict[str, str], kind: str, running: Gateway
) -> None:
    got = post(running.url + path, {}, **headers)
    assert got.status == 404
    assert error_type(got) == kind
    assert path in got.json["error"]["message"]
    assert got.headers["x-dragoman-exchange"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/messages", "POST"),
        ("DELETE", "/v1/chat/completions", "POST"),
        ("POST", "/v1/models", "GET,HEAD"),
    ],
)
def test_a_wrong_method_names_the_right_one(method: str, path: str, allowed: str, running: Gateway) -> None:
    got = call(running.url + path, method)
    assert got.status == 405
    assert got.headers["allow"] == allowed
    assert allowed.replace(",", ", ") in got.json["error"]["message"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/messages", "invalid_request_error"),
        ("/v1/chat/completions", "invalid_request_error"),
        ("/v1/responses", "invalid_request_error"),
        ("/v1beta/models/demo:generateContent", "INVALID_ARGUMENT"),
        ("/v1/messages/count_tokens", "invalid_request_error"),
        ("/v1beta/models/demo:countTokens", "INVALID_ARGUMENT"),
    ],
)
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"[" * 50_000])
def test_an_unreadable_body_is_refused(path: str, kind: str, body: bytes, running: Gateway) -> None:
    got = post(running.url + path, body)
    assert got.status == 400, got.body
    assert error_type(got) == kind
    assert got.headers["x-dragoman-exchange"]


def test_the_error_for_an_unknown_model_suggests_similar_names(running: Gateway) -> None:
    got = post(f"{running.url}/v1/messages", {**MESSAGES, "model": "favorite"})
    assert (got.status, error_type(got)) == (404, "not_found_error")
    assert "favourite" in got.json["error"]["message"]


# Models


def test_models_are_listed_in_the_clients_shape(running: Gateway) -> None:
    openai = call(f"{running.url}/v1/models").json
    assert (openai["object"], openai["data"][0]["object"]) == ("list", "model")
    anthropic = call(f"{running.url}/v1/models", anthropic_version="2023-06-01").json
    assert (anthropic["has_more"], anthropic["first_id"]) == (False, "favourite")
    assert anthropic["data"][0]["type"] == "model"
    gemini = call(f"{running.url}/v1beta/models").json
    assert gemini["models"][0]["name"] == "models/favourite"
    assert gemini == call(f"{running.url}/v1/models", x_goog_api_key="k").json


def test_a_single_model_exists_if_it_has_a_route(running: Gateway) -> None:
    for name in ("favourite", "demo-leak", "gemini/any-model", "anthropic%2Fdemo"):
        shown = name.replace("%2F", "/")
        assert call(f"{running.url}/v1/models/{name}").json["id"] == shown
        assert call(f"{running.url}/v1/models/{name}", anthropic_version="1").json["id"] == shown
        assert call(f"{running.url}/v1beta/models/{name}").json["name"] == f"models/{shown}"
    got = call(f"{running.url}/v1beta/models/nonsense")
    assert (got.status, error_type(got)) == (404, "NOT_FOUND")


# Counting


@pytest.mark.parametrize("upstream_name", ["anthropic", "gemini", "openai-responses"])
def test_tokens_are_counted_by_the_upstream_if_it_can(
    upstream_name: str, running: Gateway, upstream: ScriptedUpstream
) -> None:
    got = post(
        f"{running.url}/v1/messages/count_tokens", {"model": f"{upstream_name}/demo", "messages": ASKED}
    )
    assert got.status == 200
    assert got.json["input_tokens"] > 0
    assert "x-dragoman-warnings" not in got.headers
    assert upstream.last.path.endswith(("/count_tokens", ":countTokens", "/input_tokens"))
    assert "max_tokens" not in upstream.last.json
    wrapped = {"generateContentRequest": {"model": f"models/{upstream_name}/demo", **GEMINI}}
    for body in (GEMINI, wrapped):
        counted = post(f"{running.url}/v1beta/models/{upstream_name}/demo:countTokens", body)
        assert counted.json["totalTokens"] > 0
        assert "x-dragoman-warnings" not in counted.headers


def test_tokens_are_estimated_with_a_warning_if_the_upstream_cannot_count(running: Gateway) -> None:
    body = {"model": "openai-chat/demo", "messages": [{"role": "user", "content": "word " * 720}]}
    got = post(f"{running.url}/v1/messages/count_tokens", body)
    assert 700 < got.json["input_tokens"] < 900
    assert got.headers["x-dragoman-warnings"].startswith("count-tokens-estimated")
    assert "percent" in got.headers["x-dragoman-warnings"]


def test_an_upstream_without_token_counting_is_asked_once(
    running: Gateway, upstream: ScriptedUpstream
) -> None:
    upstream.script(status(404, b"{}"))
    before = len(upstream.seen)
    body = {"model": "openai-responses/demo", "messages": ASKED}
    try:
        for _ in range(3):
            got = post(f"{running.url}/v1/messages/count_tokens", body)
            assert got.headers["x-dragoman-warnings"]
        assert len(upstream.seen) == before + 1
    finally:
        running.state.upstreams.cannot_count.clear()


def test_a_count_that_fails_is_estimated(running: Gateway, upstream: ScriptedUpstream) -> None:
    upstream.script(status(500, b"<html>"), status(200, b"not json"))
    for _ in range(2):
        body = {"model": "anthropic/demo", "messages": ASKED}
        got = post(f"{running.url}/v1/messages/count_tokens", body)
        assert got.headers["x-dragoman-warnings"].startswith("count-tokens-estimated")


# The rest


def test_pages_of_other_sites_are_refused(running: Gateway) -> None:
    got = call(f"{running.url}/v1/messages", "OPTIONS", origin="https://evil.example")
    assert got.status == 403
    got = post(f"{running.url}/v1/chat/completions", CHAT, origin="http://localhost:3000")
    assert got.status == 200
    assert [name for name in got.headers if name.startswith("access-control")] == []


def test_every_route_is_in_the_manual(running: Gateway) -> None:
    manual = MANUAL.read_text()
    served = routes(running.state, App(running.state).answer)
    shapes = {re.sub(r"\{(\w+):[^}]+\}", r"{\1}", route.path) for route in served}
    assert {shape for shape in shapes if f"`{shape}`" not in manual} == set()
    for header in ("x-dragoman-exchange", "x-dragoman-warnings", "retry-after", "x-api-key"):
        assert f"`{header}`" in manual
