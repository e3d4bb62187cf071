"""`dragoman serve` attacked over raw sockets: it refuses, uses little memory, and serves other clients."""

import gzip
import json
import re
import resource
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme
from support.gateways import before_a_chat_upstream
from support.plain_http import call, post
from support.processes import Process
from support.scripted_upstream import FOREVER, ScriptedUpstream, Wait, stream

from dragoman.transport.server import connection as server_connection

HEAD = b"Host: localhost\r\n"
ASKED = {"model": "up/demo", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
MB = 1024 * 1024
Serve = Callable[..., Process]


@pytest.fixture
def serve(tmp_path: Path, upstream: ScriptedUpstream) -> Iterator[Serve]:
    running: list[Process] = []

    def start(server: str = "", **env: str) -> Process:
        (tmp_path / "dragoman.toml").write_text(
            f'[server]\nport = 0\nclient_timeout = "1s"\n{server}\n[upstreams.up]\nprotocol = "openai-chat"\n'
            f'base_url = "{upstream.url}"\ncredential = "none"\n'
        )
        running.append(Process(tmp_path, "serve", **env))
        return running[-1]

    yield start
    for process in running:
        process.kill()


@contextmanager
def connected(process: Process, patience: float = 10) -> Iterator[socket.socket]:
    place = urlsplit(process.ready())
    with socket.create_connection((place.hostname, place.port), timeout=patience) as client:
        yield client


def answer_to(process: Process, sent: bytes) -> bytes:
    """The reply until the server closes, or is silent for a moment after the first bytes."""
    with connected(process) as client:
        with suppress(ConnectionError):
            client.sendall(sent)
        got = b""
        with suppress(ConnectionError, TimeoutError):
            while piece := client.recv(65_536):
                got += piece
                client.settimeout(0.5)
        return got


def status_of(answer: bytes) -> int:
    return int(answer.split()[1]) if answer else 0


def memory(process: Process) -> int:
    """The peak memory of the process in bytes."""
    said = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", said)
    assert found
    return int(found[1]) * 1024


def serves_others(process: Process) -> bool:
    began = time.monotonic()
    return call(f"{process.ready()}/healthz").status == 200 and time.monotonic() - began < 2


# Malformed requests


REFUSED = {
    "two lengths": (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400),
    "length and chunks": (
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "another coding": (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400),
    "a hidden coding": (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    "a folded coding": (
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "two codings": (
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        501,
    ),
    "HTTP/2.0": (b"GET /healthz HTTP/2.0\r\nHost: localhost\r\n\r\n", 505),
    "HTTP/2's preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "another address": (b"GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "two hosts": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400),
    "no host": (b"GET /healthz HTTP/1.1\r\n\r\n", 400),
    "many fields": (b"GET /healthz HTTP/1.1\r\n" + HEAD + b"A: b\r\n" * 100_000 + b"\r\n", 431),
    "a long field": (b"GET /healthz HTTP/1.1\r\n" + HEAD + b"A: " + b"b" * MB + b"\r\n\r\n", 431),
    "a long line": (b"GET /" + b"a" * MB + b" HTTP/1.1\r\n" + HEAD + b"\r\n", 431),
    "a tunnel": (b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", 400),
}


def test_a_malformed_request_is_refused(serve: Serve) -> None:
    process = serve()
    got = {name: status_of(answer_to(process, sent)) for name, (sent, _) in REFUSED.items()}
    assert got == {name: status for name, (_, status) in REFUSED.items()}
    assert serves_others(process)


def test_the_request_line_may_hold_the_gateways_url(serve: Serve) -> None:
    asked = b"GET http://localhost/healthz HTTP/1.1\r\n" + HEAD + b"\r\n"
    assert status_of(answer_to(serve(), asked)) == 200


# Memory and time


def test_pipelined_requests_use_little_memory(serve: Serve) -> None:
    process = serve()
    process.ready()
    before = memory(process)
    blob = (b"GET /healthz HTTP/1.1\r\n" + HEAD + b"\r\n") * 10_000
    with connected(process, patience=1) as client, suppress(TimeoutError, ConnectionError):
        for _ in range(100):  # the client does not read the answers
            client.sendall(blob)
    assert memory(process) - before < 30 * MB
    assert serves_others(process)


def test_trailers_are_limited_and_never_count_as_headers(serve: Serve) -> None:
    process = serve('keys = ["env:GATE"]', GATE="the-gate-key")
    process.ready()
    before = memory(process)
    chunked = b"POST /v1/messages HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    keyed = answer_to(process, chunked + b"x-api-key: the-gate-key\r\nHost: evil.example\r\n\r\n")
    assert status_of(keyed) == 401
    with connected(process) as client, suppress(TimeoutError, ConnectionError):
        client.sendall(chunked)
        for _ in range(50):
            client.sendall((b"X-A: " + b"a" * 1000 + b"\r\n") * 1000)
    assert memory(process) - before < 30 * MB
    assert serves_others(process)


def test_a_body_in_tiny_chunks_uses_little_memory(serve: Serve) -> None:
    process = serve()
    process.ready()
    before = memory(process)
    with connected(process, patience=60) as client:
        client.sendall(b"POST /v1/messages HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(10):
            client.sendall(b"2\r\n[[\r\n" * 100_000)
        client.sendall(b"0\r\n\r\n")
        assert status_of(client.recv(65_536)) == 400
    assert memory(process) - before < 40 * MB


@pytest.mark.parametrize(
    "packed", [gzip.compress(b"") * 190_000, gzip.compress(b"\0" * 200 * MB)], ids=["members", "a bomb"]
)
def test_compressed_bodies_do_not_delay_other_clients(serve: Serve, packed: bytes) -> None:
    process = serve()
    process.ready()
    before = memory(process)
    head = b"POST /v1/messages HTTP/1.1\r\n" + HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
    with connected(process, patience=30) as client:
        client.sendall(head % len(packed) + packed)
        assert serves_others(process)
        assert status_of(client.recv(65_536)) in (400, 413)
    assert memory(process) - before < 160 * MB  # a little more than twice server.max_body


# Clients that are slow on purpose


def test_an_endless_head_times_out(serve: Serve) -> None:
    process = serve()
    with connected(process) as client, suppress(ConnectionError):
        for piece in (b"GET /healthz HTTP/1.1\r\n", *[b"a: b\r\n"] * 8):
            client.sendall(piece)
            time.sleep(0.3)
        assert status_of(client.recv(65_536)) == 408
    with connected(process) as client:
        assert client.recv(65_536) == b""  # no request was sent


def test_unfinished_bodies_do_not_block_other_clients(serve: Serve) -> None:
    process = serve("max_streams = 5")
    url = process.ready()
    unfinished = b"POST /v1/messages HTTP/1.1\r\n" + HEAD + b"Content-Length: 100\r\n\r\n{"
    clients = [connected(process) for _ in range(20)]
    sockets = [client.__enter__() for client in clients]
    for client in sockets:
        client.sendall(unfinished)
    statuses = [status_of(client.recv(65_536)) for client in sockets]
    assert set(statuses) <= {408, 529}
    assert 408 in statuses
    assert post(f"{url}/v1/messages", ASKED).status == 200
    for client in clients:
        client.__exit__(None, None, None)


def test_a_dripping_body_times_out(serve: Serve) -> None:
    process = serve()
    with connected(process) as client:
        client.sendall(b"POST /v1/messages HTTP/1.1\r\n" + HEAD + b"Content-Length: 100\r\n\r\n")
        ended = threading.Event()

        def drip() -> None:
            with suppress(OSError):
                while not ended.wait(0.2):
                    client.sendall(b" ")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert status_of(client.recv(65_536)) == 408
        finally:
            ended.set()
            dripping.join()


def test_a_client_that_does_not_read_is_cut_off(serve: Serve, upstream: ScriptedUpstream) -> None:
    word = b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % (b"x" * 65_536)
    upstream.script(stream(*[word] * 400, Wait(FOREVER)))
    process = serve()
    body = b'{"model":"up/demo","stream":true,"messages":[{"role":"user","content":"hi"}]}'
    head = b"POST /v1/chat/completions HTTP/1.1\r\n" + HEAD + b"Content-Length: %d\r\n\r\n" % len(body)
    with connected(process) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(head + body)
        client.recv(1)
        assert upstream.last.closed.wait(10)
    assert serves_others(process)


def test_a_half_closed_client_gets_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    # The gateway is in this process: on a busy machine its usual limit is over before the model has answered.
    monkeypatch.setattr(server_connection, "_HALF_CLOSED", 60)
    body = json.dumps(ASKED).encode()
    asked = b"POST /v1/messages HTTP/1.1\r\n" + HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with before_a_chat_upstream() as gateway:
        place = urlsplit(gateway.url)
        with socket.create_connection((place.hostname, place.port), timeout=30) as client:
            client.sendall(asked)
            client.shutdown(socket.SHUT_WR)
            assert status_of(client.recv(65_536)) == 200


def test_too_many_connections_are_refused_and_logged(serve: Serve) -> None:
    process = serve("max_connections = 4")
    clients = [connected(process) for _ in range(4)]
    for client in clients:
        # An answered request shows that the server has accepted the connection.
        opened = client.__enter__()
        opened.sendall(b"GET /healthz HTTP/1.1\r\n" + HEAD + b"\r\n")
        assert status_of(opened.recv(65_536)) == 200
    assert status_of(answer_to(process, b"GET /healthz HTTP/1.1\r\n" + HEAD + b"\r\n")) == 503
    process.wait_for("server.max_connections")
    for client in clients:
        client.__exit__(None, None, None)
    wait_until_served(process)


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_running_out_of_descriptors_is_logged_and_passes(serve: Serve, loop: str) -> None:
    process = serve(DRAGOMAN_LOOP=loop)
    place = urlsplit(process.ready())
    open_now = len(list(Path(f"/proc/{process.pid}/fd").iterdir()))
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (open_now + 4, open_now + 4))
    address = (place.hostname, place.port)
    clients = [socket.create_connection(address, timeout=10) for _ in range(20)]
    process.wait_for("no file descriptor is left")
    for client in clients:
        client.close()
    wait_until_served(process)
    assert serves_others(process)
    assert "Traceback" not in process.said
    assert process.said.count("no file descriptor") <= 3, "it is not logged repeatedly"


def wait_until_served(process: Process) -> None:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with suppress(OSError):
            if call(f"{process.ready()}/healthz").status == 200:
                return
        time.sleep(0.1)
    raise AssertionError("the gateway does not serve")


def test_the_log_of_a_refused_key_hides_the_key(serve: Serve) -> None:
    process = serve('keys = ["env:GATE"]', GATE="the-gate-key")
    assert post(f"{process.ready()}/v1/messages", ASKED, x_api_key="sk-a-wrong-one").status == 401
    process.wait_for("a request was refused.*127.0.0.1")
    assert "sk-a-wrong-one" not in process.said


# Ways to listen


def test_listening_with_tls_and_on_a_unix_socket(serve: Serve, tmp_path: Path) -> None:
    authority = trustme.CA()
    own = authority.issue_cert("localhost", "127.0.0.1")
    own.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
    own.private_key_pem.write_to_path(tmp_path / "key.pem")
    process = serve('tls = { cert = "cert.pem", key = "key.pem" }')
    port = int(process.wait_for(r"Dragoman is at https://127\.0\.0\.1:(\d+)").group(1))
    context = ssl.create_default_context(cadata=authority.cert_pem.bytes().decode())
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as client,
    ):
        client.sendall(b"GET /healthz HTTP/1.1\r\n" + HEAD + b"\r\n")
        assert status_of(client.recv(65_536)) == 200

    process = serve('unix = "gate.sock"')
    path = tmp_path / "gate.sock"
    process.wait_for(r"Dragoman is at unix:")
    assert path.stat().st_mode & 0o777 == 0o600
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"GET /healthz HTTP/1.1\r\n" + HEAD + b"\r\n")
        assert status_of(client.recv(65_536)) == 200
    process.interrupt()
    assert process.wait() == 0
    assert not path.exists()


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (
            'tls = { cert = "none.pem", key = "none.pem" }',
            "none.pem, which cannot be read",
        ),
        ('tls = { cert = "dragoman.toml", key = "dragoman.toml" }', "are not a certificate and its key"),
        ('tls = { cert = "cert.pem" }', 'needs "key"'),
        ('unix = "missing/gate.sock"', "cannot listen on .*gate.sock"),
        ('trusted_proxies = ["nonsense"]', "must be an IP address or a network"),
    ],
)
def test_an_invalid_listen_setting_is_a_one_line_error(serve: Serve, server: str, said: str) -> None:
    process = serve(server)
    process.wait_for(said)
    assert process.wait() == 1
    assert "Traceback" not in process.said


def test_only_a_trusted_proxy_may_name_the_client(serve: Serve) -> None:
    said = b"Host: inner\r\nX-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Host: localhost\r\n"
    asked = b"GET /metrics HTTP/1.1\r\n" + said + b"\r\n"
    distrustful = serve()
    assert status_of(answer_to(distrustful, asked)) == 403
    distrustful.wait_for("a request was refused.*127.0.0.1")
    assert "203.0.113.7" not in distrustful.said
    trusting = serve('trusted_proxies = ["127.0.0.0/8"]\nkeys = ["env:GATE"]', GATE="the-gate-key")
    assert status_of(answer_to(trusting, asked)) == 401
    trusting.wait_for("a request was refused.*203.0.113.7")
