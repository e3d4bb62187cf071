"""Ways to a server: TLS, proxies, and TLS through a proxy."""

import asyncio
import socket
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
import trustme
from support.wire import Peer, Script, Wire, wire

from dragoman.http.client import BadTls, CannotConnect, Client, Malformed, ProxyRefused
from dragoman.http.client.proxies import proxy_for
from dragoman.http.urls import parse

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
# A name that leads to this machine, and is not taken for it: no proxy is asked for those.
ELSEWHERE = "elsewhere.example"

Scene = Callable[[Client], Awaitable[None]]


def _has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return authority


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def secure(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["h2", "http/1.1"])
    authority.issue_cert(*names).configure_cert(context)
    return context


async def answers(peer: Peer) -> None:
    while True:
        await peer.answer(OK)


async def asked(client: Client, url: str, **headers: str) -> bytes:
    return await (await client.ask("GET", url, headers)).read(9)


# ── TLS ──


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_certificate_that_is_trusted(trusted: trustme.CA, host: str) -> None:
    async def run() -> None:
        async with wire(answers, tls=secure(trusted, host)) as served, Client() as client:
            url = served.url.replace("127.0.0.1", host)
            for _ in range(2):
                assert await asked(client, url) == b"ok"
            assert len(served.peers) == 1
            spoken = served.peers[0].writer.get_extra_info("ssl_object")
            assert spoken.selected_alpn_protocol() == "http/1.1"

    asyncio.run(run())


def test_a_large_answer_over_tls_in_both_directions(trusted: trustme.CA) -> None:
    async def script(peer: Peer) -> None:
        sent = (await peer.request()).partition(b"\r\n\r\n")[2]
        await peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(sent) + sent)

    async def run() -> None:
        async with wire(script, tls=secure(trusted, "127.0.0.1")) as served, Client() as client:
            body = bytes(range(256)) * 12_000
            answer = await client.ask("POST", served.url, {}, body)
            await asyncio.sleep(0.1)  # more has come than is held: it is read when it is wanted
            assert await answer.read(2**30) == body

    asyncio.run(run())


def test_until_the_end_of_tls(trusted: trustme.CA) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\n\r\nok")
        await peer.hang_up()

    async def run() -> None:
        async with wire(script, tls=secure(trusted, "127.0.0.1")) as served, Client() as client:
            assert await asked(client, served.url) == b"ok"

    asyncio.run(run())


def test_certificates_that_are_not_trusted(authority: trustme.CA) -> None:
    refuse(secure(authority, "127.0.0.1"))


def test_a_certificate_for_somebody_else(trusted: trustme.CA) -> None:
    refuse(secure(trusted, "other.example"))


def test_no_tls_at_all(trusted: trustme.CA) -> None:
    refuse(None)


def refuse(tls: ssl.SSLContext | None) -> None:
    async def script(peer: Peer) -> None:
        await peer.say(OK)

    async def run() -> None:
        async with wire(script, tls=tls) as served, Client() as client:
            with pytest.raises(BadTls):
                await client.ask("GET", served.url.replace("http:", "https:"), connect_timeout=5)
            assert [peer.requests for peer in served.peers] in ([], [[]])

    asyncio.run(run())


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_a_server_by_its_ipv6_address(trusted: trustme.CA) -> None:
    async def run() -> None:
        for tls in (None, secure(trusted, "::1")):
            async with wire(answers, tls=tls, host="::1") as server, Client() as client:
                assert await asked(client, server.url) == b"ok"
                assert f"\r\nhost: [::1]:{server.port}\r\n".encode() in server.peers[0].requests[0]

    asyncio.run(run())


# ── proxies ──


class Proxy:
    """Passes on to `port` whatever it is asked to connect to; what it was asked stays."""

    def __init__(self, port: int, *refusal: bytes) -> None:
        self.port = port
        self.refusal = refusal
        self.seen: list[bytes] = []

    async def __call__(self, peer: Peer) -> None:
        self.seen.append(await peer.reader.readuntil(b"\r\n\r\n"))
        if self.refusal:
            await peer.say(*self.refusal)
            await peer.hang_up()
            return
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            await peer.say(b"HTTP/1.1 200 Connection", b" established\r\nVia: us\r\n\r\n")
            await asyncio.gather(_pass(peer.reader, writer), _pass(reader, peer.writer))
        finally:
            writer.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()


def by_proxy(
    monkeypatch: pytest.MonkeyPatch, script: Script, scene: Scene, tls: ssl.SSLContext | None = None
) -> Wire:
    async def run() -> Wire:
        async with wire(script, tls=tls) as proxy:
            address = proxy.url.replace("//", "//me:s%40me@").replace("127.0.0.1", "localhost")
            monkeypatch.setenv("http_proxy", address)
            monkeypatch.setenv("https_proxy", address)
            async with Client() as client:
                await scene(client)
            return proxy

    return asyncio.run(run())


LOGIN = b"\r\nproxy-authorization: Basic " + b64encode(b"me:s@me") + b"\r\n"


def test_http_by_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(client: Client) -> None:
        for path in ("/a?b=c", "/d"):
            assert await asked(client, f"http://{ELSEWHERE}:81{path}", x="y") == b"ok"

    [peer] = by_proxy(monkeypatch, answers, scene).peers
    first, second = peer.requests
    assert first.startswith(
        b"GET http://elsewhere.example:81/a?b=c HTTP/1.1\r\nhost: elsewhere.example:81\r\n"
    )
    assert second.startswith(b"GET http://elsewhere.example:81/d HTTP/1.1\r\n")
    assert LOGIN in first
    assert LOGIN in second


@pytest.mark.parametrize("safe_proxy", [False, True])
def test_https_through_a_proxy(
    trusted: trustme.CA, monkeypatch: pytest.MonkeyPatch, safe_proxy: bool
) -> None:
    """The proxy sees where to, and nothing else."""

    async def run() -> None:
        async with wire(answers, tls=secure(trusted, ELSEWHERE)) as server:
            proxy = Proxy(server.port)

            async with wire(proxy, tls=secure(trusted, "localhost") if safe_proxy else None) as served:
                address = served.url.replace("//", "//me:s%40me@").replace("127.0.0.1", "localhost")
                monkeypatch.setenv("https_proxy", address)
                async with Client() as client:
                    for _ in range(2):
                        assert await asked(client, f"https://{ELSEWHERE}/x", authorization="sk") == b"ok"
                where = b"CONNECT elsewhere.example:443 HTTP/1.1\r\nhost: elsewhere.example:443"
                assert proxy.seen == [where + LOGIN + b"\r\n"]
            [peer] = server.peers
            for sent in peer.requests:
                assert sent.startswith(b"GET /x HTTP/1.1\r\nhost: elsewhere.example\r\n")
            assert len(peer.requests) == 2
            assert b"proxy-authorization" not in peer.requests[0]

    asyncio.run(run())


def test_a_server_behind_a_proxy_needs_its_own_certificate(
    trusted: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        tls = secure(trusted, "other.example")
        async with wire(answers, tls=tls) as server, wire(Proxy(server.port)) as served:
            monkeypatch.setenv("https_proxy", served.url)
            async with Client() as client:
                with pytest.raises(BadTls):
                    await client.ask("GET", f"https://{ELSEWHERE}/")

    asyncio.run(run())


REFUSALS: dict[str, tuple[bytes, type[Exception], str]] = {
    "login": (b"HTTP/1.1 407 Who are you\r\ncontent-length: 2\r\n\r\nno", ProxyRefused, "407"),
    "gone": (b"HTTP/1.1 200 ", ProxyRefused, "closed"),
    "nonsense": (b"SSH-2.0\r\n\r\n", Malformed, "no HTTP"),
    "endless": (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000, Malformed, "endless"),
    "hasty": (b"HTTP/1.1 200 OK\r\n\r\n\x16\x03\x03", Malformed, "before"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_a_proxy_that_lets_nobody_through(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said, error, why = REFUSALS[name]

    async def scene(client: Client) -> None:
        with pytest.raises(error, match=why):
            await client.ask("GET", f"https://{ELSEWHERE}/")

    by_proxy(monkeypatch, Proxy(0, said), scene)


def test_a_proxy_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")

    async def run() -> None:
        async with Client() as client:
            with pytest.raises(CannotConnect) as caught:
                await client.ask("GET", f"https://{ELSEWHERE}/")
            assert (caught.value.host, caught.value.port) == ("127.0.0.1", 9)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("https://api.example.com", "http://secure:3128"),
        ("http://api.example.com", "http://plain:80"),
        ("https://inside.example.org", None),
        ("https://example.org", None),
        ("http://localhost:11434", None),
        ("http://127.0.0.1:11434", None),
        ("http://127.9.9.9", None),
        ("http://[::1]:11434", None),
        ("http://model.localhost", None),
        ("http://10.0.0.1", "http://plain:80"),
    ],
)
def test_which_proxy_the_environment_names(
    url: str, proxy: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://secure:3128")
    monkeypatch.setenv("http_proxy", "plain")
    monkeypatch.setenv("no_proxy", "example.org")
    found = proxy_for(parse(url))
    assert (found and f"{found.scheme}://{found.host}:{found.port}") == proxy


def test_a_proxy_of_another_kind_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "socks5://127.0.0.1:1080")

    async def run() -> None:
        async with Client() as client:
            with pytest.raises(ProxyRefused, match="https_proxy names no http proxy"):
                await client.ask("GET", f"https://{ELSEWHERE}/")

    asyncio.run(run())


def test_without_proxies() -> None:
    assert proxy_for(parse("https://api.example.com")) is None
