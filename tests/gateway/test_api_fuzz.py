"""Fuzzed HTTP requests get an answer in the client's protocol, never a 500, never a secret."""

import json
import logging
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from credential_places import LogCollector
from gateway_harness import config
from hypothesis import strategies as st
from support import mutations
from support.agent_requests import AGENTS
from support.fuzzing import fuzz
from support.gateways import Gateway, Loop, gateway
from support.scripted_talk import question, written
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES

from dragoman.conform import laws
from dragoman.conform.scripted import serve
from dragoman.observe.logs import Json

KEY = "gate-SECRET-0123456789"
WRONG = "sk-wrong-SECRET-0123456789"
ENV = {"UP": "sk-upstream-SECRET-0123456789", "GATE": KEY}
LARGE = b"x" * 310_000
MODELS = ["a/demo", "c/demo", "r/demo", "g/demo", "k/demo", "anything", "c/demo-invalid", "a/demo-thinking"]
MORE = """
[upstreams.k]
protocol = "gemini"
base_url = "{url}"
credential = "client"
[[routes]]
match = "*"
to = "r/demo"
"""


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


class Caller:
    """A client that sends raw bytes to the gateway."""

    def __init__(self, gateway: Gateway, log: LogCollector) -> None:
        self._address = ("127.0.0.1", int(gateway.url.rpartition(":")[2]))
        self._log = log

    def post(self, path: str, body: bytes, headers: list[tuple[bytes, bytes]] | None = None) -> Answer:
        own = [(b"content-type", b"application/json"), (b"x-api-key", KEY.encode())]
        return self.send(b"POST", path.encode("utf-8", "replace"), [*own, *(headers or [])], body)

    def send(self, method: bytes, path: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> Answer:
        ours = [(b"host", b"localhost"), (b"connection", b"close")]
        if not any(name.lower() in (b"content-length", b"transfer-encoding") for name, _ in headers):
            ours.append((b"content-length", b"%d" % len(body)))
        lines = [b"%s %s HTTP/1.1" % (method, path)]
        lines += [b"%s: %s" % header for header in (*ours, *headers)]
        return self.judged(_exchange(self._address, b"\r\n".join([*lines, b"", body])))

    def judged(self, data: bytes) -> Answer:
        """The laws that hold for every answer."""
        if not data.startswith(b"HTTP/1.0 400"):  # not HTTP: aiohttp repeats the request line
            assert b"SECRET" not in data
        assert b"Traceback" not in data
        assert b"site-packages" not in data
        said, self._log.lines = self._log.lines, []
        assert [line for line in said if "SECRET" in line] == []
        assert [line for line in said if "bug in Dragoman" in line] == []
        data = data.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
        head, _, body = data.partition(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")
        answer = Answer(int(status.split()[1]), {}, body)
        for line in lines:
            name, _, value = line.partition(":")
            assert re.fullmatch(r"[\x21-\x7e]+", name), head
            answer.headers[name.lower()] = value.strip()
        if answer.headers.get("transfer-encoding") == "chunked":
            answer.body = _unchunked(body)
        assert answer.status < 500, data
        return answer


def _exchange(address: tuple[str, int], data: bytes) -> bytes:
    with socket.create_connection(address, timeout=3) as connection:
        received: list[bytes] = []
        try:
            connection.sendall(data)
            while piece := connection.recv(65_536):
                received.append(piece)
        except ConnectionError:
            pass  # refused before all bytes were sent
        answer = b"".join(received)
        assert answer.startswith((b"HTTP/1.1 ", b"HTTP/1.0 400 ")), (data[:200], answer)
        return answer


def _unchunked(body: bytes) -> bytes:
    whole: list[bytes] = []
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        whole.append(body[:length])
        assert body[length : length + 2] == b"\r\n"
        body = body[length + 2 :]
        if not length:
            return b"".join(whole)
    raise AssertionError("the transfer has no end")


@contextmanager
def listening() -> Iterator[LogCollector]:
    everything = LogCollector()
    everything.setFormatter(Json())
    root = logging.getLogger()
    levels = [(logger, logger.level) for logger in (root, logging.getLogger("dragoman"))]
    root.addHandler(everything)
    for logger, _ in levels:
        logger.setLevel(logging.DEBUG)
    try:
        yield everything
    finally:
        root.removeHandler(everything)
        for logger, level in levels:
            logger.setLevel(level)


@pytest.fixture(scope="module")
def caller() -> Iterator[Caller]:
    loop = Loop()
    url, stop = loop.run(serve(pace=0))
    toml = config(
        url, server='retries = 0\nkeys = ["env:GATE"]\nmax_body = "300KB"', more=MORE.format(url=url)
    )
    with listening() as log, gateway(toml.replace('"none"', '"env:UP"'), loop, ENV) as here:
        yield Caller(here, log)
        assert here.state.lifecycle.running == 0
    loop.run(stop())
    loop.close()


def bodies(protocol: str) -> list[tuple[str, dict[str, Any]]]:
    """Bodies of clients of `protocol`, each for one of the models."""
    full = json.loads((Path(__file__).parents[1] / "fuzz" / "requests" / f"{protocol}.json").read_bytes())
    samples = [(full["path"], full["body"])]
    samples += [(agent.path, agent.body) for agent in AGENTS.values() if agent.protocol == protocol]
    asked: list[tuple[str, dict[str, Any]]] = []
    for number, (path, body) in enumerate(samples):
        model = MODELS[number % len(MODELS)]
        asked.append((re.sub(r"models/.+:", f"models/{model}:", path), {**body, "model": model}))
    for model in MODELS:
        path, data = written(protocol, question(model, stream=len(asked) % 2 == 0))
        asked.append((path, json.loads(data)))
    return asked


def in_its_protocol(protocol: str, answer: Answer) -> None:
    stream = answer.headers["content-type"].startswith("text/event-stream")
    assert laws.check(protocol, answer.body, stream=stream) == [], answer.body


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_wrong_types_in_bodies(protocol: str, caller: Caller) -> None:
    def spoiled(chosen: tuple[str, dict[str, Any]]) -> st.SearchStrategy[tuple[str, bytes]]:
        values = mutations.retyped_value(chosen[1])
        return values.map(lambda value: (chosen[0], json.dumps(value).encode()))

    inputs = st.sampled_from(bodies(protocol)).flatmap(spoiled)
    fuzz(inputs, lambda sent: in_its_protocol(protocol, caller.post(*sent)), 120)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_bodies_with_wrong_headers_or_encodings(protocol: str, caller: Caller) -> None:
    def spoiled(chosen: tuple[str, dict[str, Any]]) -> st.SearchStrategy[tuple[str, bytes]]:
        raw = mutations.spoiled_bytes(json.dumps(chosen[1], ensure_ascii=False).encode("utf-8", "replace"))
        odd = st.sampled_from(
            [b"", b"null", b"[]", b"[" * 5000, b'{"model": "a/demo"}', b"\xff\xfe{}", b"1e999"]
        )
        return st.tuples(st.just(chosen[0]), st.one_of(raw, st.binary(max_size=30), odd))

    inputs = st.sampled_from(bodies(protocol)).flatmap(spoiled)
    fuzz(inputs, lambda sent: in_its_protocol(protocol, caller.post(*sent)), 60)


PATHS = [
    "/v1/messages",
    "/v1/messages?beta=true",
    "/v1/messages/count_tokens",
    "/v1/chat/completions",
    "/v1/responses",
    "/v1beta/models/a/demo:generateContent",
    "/v1beta/models/a/demo:streamGenerateContent?alt=sse",
    "/v1beta/models/a/demo:countTokens",
    "/v1beta/models/a%2Fdemo:nonsense",
    "/v1/models",
    "/v1/models/a/demo",
    "/v1beta/models",
    "/v1beta/models/x",
    "/healthz",
    "/metrics",
    "/exchanges",
    "/sessions",
    "/sessions/0123456789abcdef",
    "/usage",
    "/scores",
    "/",
    "/api/hello",
]
METHODS = [b"GET", b"POST", b"POST", b"POST", b"PUT", b"DELETE", b"PATCH", b"HEAD", b"OPTIONS", b"BREW"]
HEADERS: list[tuple[bytes, bytes]] = [
    (b"content-type", b"text/plain; charset=nonsense"),
    (b"content-type", b"\xff\xff"),
    (b"content-encoding", b"gzip"),
    (b"content-encoding", b"deflate"),
    (b"content-encoding", b"br"),
    (b"content-encoding", b"nonsense"),
    (b"transfer-encoding", b"chunked"),
    (b"content-length", b"3"),
    (b"content-length", b"-1"),
    (b"expect", b"100-continue"),
    (b"expect", b"nonsense"),
    (b"host", b"evil.example"),
    (b"origin", b"https://evil.example"),
    (b"range", b"bytes=0-1"),
    (b"anthropic-version", b"2023-06-01"),
    (b"anthropic-beta", b"\xc3\xa9, x"),
    (b"x-goog-api-key", b"x"),
    (b"accept-encoding", b"gzip"),
    (b"upgrade", b"websocket"),
    (b"cookie", b'a="\\'),
    (b"x-" + b"a" * 300, b"b" * 9000),
]
KEYS: list[tuple[bytes, bytes]] = [
    (b"x-api-key", KEY.encode()),
    (b"authorization", b"Bearer " + KEY.encode()),
    (b"authorization", b"bearer  " + KEY.encode() + b" "),
    (b"x-goog-api-key", KEY.encode()),
    (b"x-api-key", WRONG.encode()),
    (b"x-api-key", b"\xff\xfe" + WRONG.encode()),
    (b"authorization", b"Basic " + WRONG.encode()),
    (b"authorization", b""),
]


@st.composite
def odd_requests(draw: st.DrawFn) -> tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]:
    path = draw(st.sampled_from(PATHS))
    odd = [
        "",
        "/",
        "//",
        "%00",
        "%ff",
        "%0d%0a",
        "?key=" + WRONG,
        f"?key={KEY}%0a",
        "?a=%F0",
        "é",
        "..%2f",
        ":",
    ]
    path += draw(st.sampled_from([*[""] * 12, *odd]))
    keys = draw(st.lists(st.sampled_from([KEYS[0], *KEYS]), max_size=2))
    headers = draw(st.lists(st.sampled_from(HEADERS), max_size=2, unique_by=lambda header: header[0]))
    samples = [json.dumps(body).encode() for name in PROTOCOLS for _, body in bodies(name)[-2:]]
    body = draw(
        st.sampled_from(
            [*samples, b"", b"{}", b"\xff", b"0\r\n\r\n", b"2\r\n{}\r\n0\r\n\r\n", b"x" * 400_000]
        )
    )
    return draw(st.sampled_from(METHODS)), path.encode(), [*keys, *headers], body


def test_odd_requests(caller: Caller) -> None:
    def sent(request: tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]) -> None:
        method, path, headers, body = request
        # The request ends here, whatever length its head claims.
        caller.send(method, path, headers, body + b"\r\n\r\n")

    fuzz(odd_requests(), sent, 250)


@pytest.mark.parametrize(
    ("protocol", "path"),
    [
        (ANTHROPIC, "/v1/messages"),
        (CHAT, "/v1/chat/completions"),
        (RESPONSES, "/v1/responses"),
        (GEMINI, "/v1beta/models/a/demo:generateContent"),
    ],
)
def test_known_odd_requests(protocol: str, path: str, caller: Caller) -> None:
    for body, headers, status in (
        (LARGE, [], 413),
        (b"{}", [(b"content-encoding", b"gzip")], 400),
        (b"{}", [(b"content-encoding", b"nonsense")], None),
        (b"{}", [(b"x-api-key", WRONG.encode())], None),
    ):
        answer = caller.post(path, body, headers)
        assert status is None or answer.status == status
        in_its_protocol(protocol, answer)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_member_name_cannot_inject_a_header(protocol: str, caller: Caller) -> None:
    for path, body in bodies(protocol)[-len(MODELS) :]:
        odd = {**body, "x\r\nset-cookie: a=b": 1, "é\n": {"\r\n": 2}}
        answer = caller.post(path, json.dumps(odd).encode())
        assert "set-cookie" not in answer.headers


def test_a_key_in_the_query_that_is_no_legal_header_is_refused(caller: Caller) -> None:
    """`credential = "client"` would pass it on."""
    path, data = written(GEMINI, question("k/demo", stream=True))
    answer = caller.send(b"POST", f"{path}&key=a%0d%0ab".encode(), [KEYS[0]], data)
    in_its_protocol(GEMINI, answer)
