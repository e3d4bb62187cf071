"""How the HTTP client reaches a server: TLS, client certificates, proxies, HTTP/2."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from support.http2 import Stream, http2
from support.proxies import ForwardProxy, SocksProxy, proxy
from support.raw_server import Peer, wire

from dragoman.transport.client import BadTls, Client, Network, ProxyRefused, open_client
from dragoman.transport.client.proxies import proxy_for
from dragoman.transport.urls import parse

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
# A host name that only the proxies of these tests can resolve.
ELSEWHERE = "elsewhere.example"


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
def known(authority: trustme.CA) -> Network:
    return Network(ca=authority.cert_pem.bytes())


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


def secure(authority: trustme.CA, *names: str, **more: datetime) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names, **more).configure_cert(context)
    return context


async def answers(peer: Peer) -> None:
    while True:
        await peer.answer(OK)


async def asked(client: Client, url: str, network: Network | None = None, **headers: str) -> bytes:
    answer = await client.request("POST", url, headers, b"{}", network=network or Network())
    return await answer.read(9)


# ── TLS ──


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_trusted_certificate_is_accepted(authority: trustme.CA, known: Network, host: str) -> None:
    async def run() -> None:
        async with wire(answers, tls=secure(authority, host)) as served, open_client() as client:
            url = served.url.replace("127.0.0.1", host)
            for _ in range(2):
                assert await asked(client, url, known) == b"ok"
            assert len(served.peers) == 1

    asyncio.run(run())


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"])
def test_certificates_of_the_environment_are_trusted(
    name: str, authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv(name, str(tmp_path if name.endswith("DIR") else tmp_path / "ca.pem"))

    async def run() -> None:
        async with wire(answers, tls=secure(authority, "127.0.0.1")) as served, open_client() as client:
            assert await asked(client, served.url) == b"ok"

    asyncio.run(run())


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_a_missing_ssl_cert_file_is_an_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "/nowhere/ca.pem")

    async def run() -> None:
        async with open_client() as client:
            with pytest.raises(
                BadTls, match=rf"variable {name} names the file /nowhere/ca.pem, which cannot"
            ):
                await asked(client, "https://127.0.0.1:1/")

    asyncio.run(run())


def test_a_large_body_over_tls_in_both_directions(authority: trustme.CA, known: Network) -> None:
    async def script(peer: Peer) -> None:
        sent = (await peer.request()).partition(b"\r\n\r\n")[2]
        await peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(sent) + sent)

    async def run() -> None:
        async with wire(script, tls=secure(authority, "127.0.0.1")) as served, open_client() as client:
            body = bytes(range(256)) * 12_000
            answer = await client.request("POST", served.url, {}, body, network=known)
            assert await answer.read(2**30) == body

    asyncio.run(run())


NOW = datetime.now(UTC)
DAY = timedelta(days=1)
Make = Callable[[trustme.CA], ssl.SSLContext | None]
BAD: dict[str, tuple[Make, str]] = {
    "unknown issuer": (
        lambda _: secure(trustme.CA(), "127.0.0.1"),
        "from an unknown issuer.*name the issuer's certificate with ca = PATH",
    ),
    "another name": (
        lambda ca: secure(ca, "other.example"),
        "for other names than 127.0.0.1; use a name that it is made for",
    ),
    "expired": (
        lambda ca: secure(ca, "127.0.0.1", not_before=NOW - 9 * DAY, not_after=NOW - DAY),
        "has expired; it must be renewed",
    ),
    "too early": (
        lambda ca: secure(ca, "127.0.0.1", not_before=NOW + DAY, not_after=NOW + 9 * DAY),
        "not valid yet; is this machine's clock right",
    ),
    "no TLS": (lambda _: None, r"does not speak TLS on port \d+; .* write http://"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_tls_failure_says_what_is_wrong_and_what_to_do(
    name: str, authority: trustme.CA, known: Network
) -> None:
    make, says = BAD[name]

    async def script(peer: Peer) -> None:
        await peer.say(OK)

    async def run() -> None:
        async with wire(script, tls=make(authority)) as served, open_client() as client:
            with pytest.raises(BadTls, match=says):
                await asked(client, served.url.replace("http:", "https:"), known)
            assert [peer.requests for peer in served.peers] in ([], [[]])

    asyncio.run(run())


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_a_server_with_an_ipv6_address_is_reached(authority: trustme.CA, known: Network) -> None:
    async def run() -> None:
        for tls in (None, secure(authority, "::1")):
            async with wire(answers, tls=tls, host="::1") as server, open_client() as client:
                assert await asked(client, server.url, known) == b"ok"
                assert f"\r\nhost: [::1]:{server.port}\r\n".encode() in server.peers[0].requests[0].lower()

    asyncio.run(run())


def test_a_client_certificate_is_sent_to_a_server_that_asks(authority: trustme.CA, known: Network) -> None:
    mine = authority.issue_cert("me@example.org").private_key_and_cert_chain_pem.bytes()

    async def run() -> None:
        tls = secure(authority, "127.0.0.1")
        tls.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(tls)
        async with wire(answers, tls=tls) as served, open_client() as client:
            assert await asked(client, served.url, Network(ca=known.ca, client_cert=mine)) == b"ok"
            with pytest.raises(Exception, match=r"closed the connection|client_cert"):
                await asked(client, served.url, known)

    asyncio.run(run())


def test_many_networks_do_not_disturb_a_running_response() -> None:
    """Certificates are renewed repeatedly. A response that began before a renewal continues."""
    go_on = asyncio.Event()

    async def script(peer: Peer) -> None:
        while True:
            if b"/long" in await peer.request():
                await peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no")
                await go_on.wait()
                await peer.say(b"k")
            else:
                await peer.say(OK)

    async def run() -> None:
        async with wire(script) as served, open_client() as client:
            long = await client.request("POST", served.url + "/long", {}, b"{}")
            for number in range(70):
                assert await asked(client, served.url, Network(ca=b"%d" % number)) == b"ok"
            go_on.set()
            assert await long.read(9) == b"ok"

    asyncio.run(run())


# ── HTTP/2 ──


async def says_ok(stream: Stream) -> None:
    await stream.begin()
    await stream.say(b"ok")
    await stream.end()


def test_http2_is_used_if_the_server_offers_it(authority: trustme.CA, known: Network) -> None:
    async def run() -> None:
        async with http2(says_ok, secure(authority, "127.0.0.1")) as served, open_client() as client:
            assert await asked(client, served.url + "/x", known, authorization="Bearer sk") == b"ok"
            found = await asyncio.gather(*[asked(client, served.url, known) for _ in range(9)])
            assert found == [b"ok"] * 9
            assert len(served.lines) == 1, "all of them share one connection"
            first = served.streams[0]
            assert first.headers[":path"] == "/x"
            assert first.headers["authorization"] == "Bearer sk"
            assert first.body == b"{}"

    asyncio.run(run())


def test_a_closed_http2_connection_loses_no_request(authority: trustme.CA, known: Network) -> None:
    asked_for = 0

    async def script(stream: Stream) -> None:
        nonlocal asked_for
        asked_for += 1
        if asked_for == 2:
            stream.hang_up()
        else:
            await says_ok(stream)

    async def run() -> None:
        async with http2(script, secure(authority, "127.0.0.1")) as served, open_client() as client:
            for _ in range(3):
                assert await asked(client, served.url, known) == b"ok"
            assert asked_for == 4

    asyncio.run(run())


def test_closing_an_http2_answer_resets_its_stream(authority: trustme.CA, known: Network) -> None:
    async def script(stream: Stream) -> None:
        await stream.begin()
        await stream.say(b"ok")
        await stream.reset.wait()

    async def run() -> None:
        async with http2(script, secure(authority, "127.0.0.1")) as served, open_client() as client:
            answer = await client.request("POST", served.url, {}, b"{}", network=known)
            assert await answer.chunk() == b"ok"
            await answer.close()
            await asyncio.wait_for(served.streams[0].reset.wait(), 30)
            assert not served.lines[0].writer.is_closing()

    asyncio.run(run())


def test_a_slow_caller_stops_the_server_over_http2(authority: trustme.CA, known: Network) -> None:
    """libcurl buffers up to twenty megabytes per stream, and has no option for another size."""
    size = 40 * 1024 * 1024

    async def script(stream: Stream) -> None:
        await stream.begin()
        await stream.say(bytes(size))
        await stream.end()

    async def run() -> None:
        async with http2(script, secure(authority, "127.0.0.1")) as served, open_client() as client:
            answer = await client.request("POST", served.url, {}, b"{}", network=known)
            before = -1
            while served.streams[0].sent != before:
                before = served.streams[0].sent
                await asyncio.sleep(0.1)
            assert before <= 24 * 1024 * 1024
            assert len(await answer.read(2**30)) == size

    asyncio.run(run())


def test_more_answers_at_once_than_an_http2_connection_allows(authority: trustme.CA, known: Network) -> None:
    """Agents stream for minutes, so no request may wait for the end of another one's stream."""

    async def script(stream: Stream) -> None:
        await stream.begin()
        await stream.say(b"ok")
        await stream.reset.wait()

    async def run() -> None:
        async with http2(script, secure(authority, "127.0.0.1"), most=100) as served, open_client() as client:
            asks = [client.request("POST", served.url, {}, b"{}", network=known) for _ in range(150)]
            async with asyncio.timeout(20):
                running = await asyncio.gather(*asks)
                assert [await answer.chunk() for answer in running] == [b"ok"] * 150
            assert sum(1 for line in served.lines if line.streams) > 1
            for answer in running:
                await answer.close()

    asyncio.run(run())


# ── proxies ──

PROXIES = pytest.mark.parametrize("kind", [ForwardProxy, SocksProxy])


@PROXIES
@pytest.mark.parametrize("login", ["", "me:s@me"])
@pytest.mark.parametrize("safe", [False, True])
def test_requests_go_through_a_proxy(
    kind: type[ForwardProxy | SocksProxy], login: str, safe: bool, authority: trustme.CA, known: Network
) -> None:
    """With TLS the proxy sees only the destination. The server never sees the proxy's login."""

    async def run() -> None:
        tls = secure(authority, ELSEWHERE) if safe else None
        async with wire(answers, tls=tls) as server:
            url = f"http{'s' if safe else ''}://{ELSEWHERE}:{server.port}/x"
            async with proxy(kind({ELSEWHERE: server.port}, login)) as relay, open_client() as client:
                network = Network(proxy=relay.url(login.replace("@", "%40")), ca=known.ca)
                for _ in range(2):
                    assert await asked(client, url, network, authorization="sk-key") == b"ok"
                assert relay.asked == [f"{ELSEWHERE}:{server.port}"]
                if safe:
                    assert not any(b"sk-key" in head for head in relay.heads)
            [peer] = server.peers
            assert len(peer.requests) == 2
            if safe:
                assert b"proxy-authorization" not in peer.requests[0]

    asyncio.run(run())


@PROXIES
@pytest.mark.parametrize("safe", [False, True])
@pytest.mark.parametrize(
    ("login", "says"), [("", "requires a login"), ("me:wrong", "does not accept the login")]
)
def test_a_wrong_proxy_login_is_an_error(
    kind: type[ForwardProxy | SocksProxy], safe: bool, login: str, says: str
) -> None:
    async def run() -> None:
        async with proxy(kind({}, "me:right")) as relay, open_client() as client:
            with pytest.raises(ProxyRefused, match=says) as caught:
                await asked(client, f"http{'s' if safe else ''}://{ELSEWHERE}/", Network(relay.url(login)))
            assert relay.url() in str(caught.value)
            assert "wrong" not in str(caught.value)
            assert "right" not in str(caught.value)

    asyncio.run(run())


def test_a_proxy_that_refuses_the_connection_is_an_error() -> None:
    async def run() -> None:
        refusal = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"
        async with proxy(ForwardProxy({}, refusal=refusal)) as relay, open_client() as client:
            with pytest.raises(
                ProxyRefused, match=f"the proxy {relay.url()} does not connect to {ELSEWHERE}:443"
            ):
                await asked(client, f"https://{ELSEWHERE}/", Network(relay.url()))

    asyncio.run(run())


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
def test_an_unreachable_proxy_is_an_error(scheme: str) -> None:
    async def run() -> None:
        async with open_client() as client:
            for where, says in (
                ("127.0.0.1:9", "refuses connections"),
                ("nowhere.invalid:9", "cannot be found|refuses"),
            ):
                with pytest.raises(ProxyRefused, match=f"the (host of the )?proxy .*{where}.* ({says})"):
                    await asked(client, f"https://{ELSEWHERE}/", Network(f"{scheme}://me:pw@{where}"))

    asyncio.run(run())


def test_the_proxy_of_the_environment_is_used(
    authority: trustme.CA, known: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with wire(answers) as server, proxy(ForwardProxy({ELSEWHERE: server.port})) as relay:
            for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
                monkeypatch.setenv(name, relay.url())
                async with open_client() as client:
                    assert await asked(client, f"http://{ELSEWHERE}/") == b"ok"
                    assert await asked(client, server.url) == b"ok", "this machine is asked directly"
                monkeypatch.delenv(name)
            assert relay.asked == [f"{ELSEWHERE}:80"] * 3
            monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
            async with open_client() as client:
                assert await asked(client, f"http://{ELSEWHERE}/", Network(relay.url())) == b"ok"
                with pytest.raises(Exception, match="cannot be found"):
                    await asked(client, f"http://{ELSEWHERE}/", Network("none"))

    asyncio.run(run())


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://api.example.com", "http://secure:3128"),
        ("http://api.example.com", "http://plain"),
        ("https://inside.example.org", None),
        ("https://example.org", None),
        ("http://localhost:11434", None),
        ("http://127.0.0.1:11434", None),
        ("http://127.9.9.9", None),
        ("http://[::1]:11434", None),
        ("http://model.localhost", None),
        ("http://10.0.0.1", None),
        ("http://11.0.0.1", "http://plain"),
    ],
)
def test_proxy_variables_and_exceptions(url: str, found: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://secure:3128")
    monkeypatch.setenv("http_proxy", "plain")
    monkeypatch.setenv("no_proxy", "example.org, 10.0.0.0/8")
    assert proxy_for(parse(url), Network()) == found
    assert proxy_for(parse(url), Network(proxy="socks5://other")) == "socks5://other"
    assert proxy_for(parse(url), Network(proxy="none")) is None


def test_the_repr_of_a_network_hides_secrets() -> None:
    shown = repr(Network(proxy="http://me:sk-hidden@x", client_cert=b"sk-hidden"))
    assert "hidden" not in shown
