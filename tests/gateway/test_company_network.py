"""Proxies, certificates and client certificates, as `docs/how-to/company-network.md` shows them."""

import asyncio
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from gateway_harness import ask, running
from support.proxies import ForwardProxy, Relay, SocksProxy, proxy
from support.raw_server import Peer, Script, Wire, wire
from support.wires import CHAT

from dragoman.cli.check.probe import check
from dragoman.config import loads
from dragoman.config.types import Config, ConfigError
from dragoman.gateway.state import State

INSIDE = "models.example.internal"
ANSWER = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
}
MODELS = {"object": "list", "data": [{"id": "m", "object": "model"}]}
TOKEN = {"access_token": "fresh-token", "expires_in": 3600}


def answering(status: str = "200 OK", headers: bytes = b"") -> Script:
    """A server with one model, which also refreshes tokens."""

    async def script(peer: Peer) -> None:
        while True:
            sent = await peer.request()
            said = MODELS if sent.startswith(b"GET ") else TOKEN if b"/token" in sent[:40] else ANSWER
            body = json.dumps(said).encode()
            head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
            await peer.say(head.encode() + headers + b"\r\n" + body)

    return script


def tls_for(authority: trustme.CA, *, wants_client: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(INSIDE, "127.0.0.1").configure_cert(context)
    if wants_client:
        context.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(context)
    return context


def toml(url: str, *keys: str, credential: str = '"none"') -> str:
    head = f'[server]\nretries = 0\n[upstreams.up]\nprotocol = "openai-chat"\nbase_url = "{url}"\n'
    return "\n".join([f"{head}credential = {credential}", *keys])


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def files(authority: trustme.CA, tmp_path: Path) -> Iterator[Path]:
    """The files that the config names."""
    authority.cert_pem.write_to_path(str(tmp_path / "company-ca.pem"))
    mine = authority.issue_cert("me@example.org")
    mine.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "both.pem"))
    mine.cert_chain_pems[0].write_to_path(str(tmp_path / "me.pem"))
    mine.private_key_pem.write_to_path(str(tmp_path / "me.key"))
    (tmp_path / "empty.pem").write_text("nothing of the kind")
    return tmp_path


async def everything_works(config: str) -> None:
    """A model's answer, the list of models, and `dragoman check`."""
    async with running(config) as gateway:
        got = await ask(gateway, CHAT, "up/m", stream=False)
        assert got.status == 200, got.body
        async with gateway.session.get(gateway.url + "/v1/models") as listed:
            assert "up/m" in await listed.text() or '"m"' in await listed.text()
    [finding] = await check(loads(config, env={}), {})
    assert (finding.ok, finding.message) == (True, "answers (200)")


KEYS = {
    "a certificate authority": ['ca = "{files}/company-ca.pem"'],
    "a client certificate in one file": [
        'ca = "{files}/company-ca.pem"',
        'client_cert = "{files}/both.pem"',
    ],
    "a client certificate in two": [
        'ca = "{files}/company-ca.pem"',
        'client_cert = {{ cert = "{files}/me.pem", key = "{files}/me.key" }}',
    ],
}


@pytest.mark.parametrize("name", KEYS)
def test_certificates(name: str, authority: trustme.CA, files: Path) -> None:
    async def scene() -> None:
        tls = tls_for(authority, wants_client="client" in name)
        async with wire(answering(), tls=tls) as served:
            await everything_works(toml(served.url, *(key.format(files=files) for key in KEYS[name])))

    asyncio.run(scene())


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_certificates_by_the_environment(
    variable: str, authority: trustme.CA, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = files / "company-ca.pem"
    if variable == "SSL_CERT_DIR":
        where = files / "trusted"
        where.mkdir()
        (files / "company-ca.pem").rename(where / "company-ca.pem")
    monkeypatch.setenv(variable, str(where))

    async def scene() -> None:
        async with wire(answering(), tls=tls_for(authority)) as served:
            await everything_works(toml(served.url))

    asyncio.run(scene())


def relay_for(kind: str, served: Wire) -> Relay:
    hosts = {INSIDE: served.port}
    return (SocksProxy if kind == "socks5h" else ForwardProxy)(hosts, "user:password")


@pytest.mark.parametrize("kind", ["http", "socks5h"])
def test_an_upstream_with_its_own_proxy(kind: str, authority: trustme.CA, files: Path) -> None:
    async def scene() -> None:
        async with (
            wire(answering(), tls=tls_for(authority)) as served,
            proxy(relay_for(kind, served)) as relay,
        ):
            keys = [f'proxy = "{relay.url("user:password")}"', f'ca = "{files}/company-ca.pem"']
            await everything_works(toml(f"https://{INSIDE}/v1", *keys))
            assert set(relay.asked) == {f"{INSIDE}:443"}

    asyncio.run(scene())


def test_the_proxy_of_the_environment_and_an_upstream_without_proxy(
    authority: trustme.CA, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with (
            wire(answering(), tls=tls_for(authority)) as served,
            proxy(relay_for("http", served)) as relay,
        ):
            monkeypatch.setenv("HTTPS_PROXY", relay.url("user:password"))
            ca = f'ca = "{files}/company-ca.pem"'
            await everything_works(toml(f"https://{INSIDE}/v1", ca))
            used = len(relay.asked)
            assert used
            [finding] = await check(loads(toml(f"https://{INSIDE}/v1", ca, 'proxy = "none"'), env={}), {})
            assert "has a host that cannot be found" in finding.message
            monkeypatch.setenv("NO_PROXY", ".example.internal,10.0.0.0/8")
            [finding] = await check(loads(toml(f"https://{INSIDE}/v1", ca), env={}), {})
            assert "has a host that cannot be found" in finding.message
            assert len(relay.asked) == used

    asyncio.run(scene())


def test_a_token_is_refreshed_through_the_same_proxy(authority: trustme.CA, files: Path) -> None:
    (files / "login.json").write_text(json.dumps({"refresh_token": "old"}))

    async def scene() -> None:
        async with (
            wire(answering(), tls=tls_for(authority)) as served,
            proxy(relay_for("http", served)) as relay,
        ):
            token_url = f"https://{INSIDE}/token"
            credential = f'{{ oauth = "{files}/login.json", token_url = "{token_url}" }}'
            keys = [f'proxy = "{relay.url("user:password")}"', f'ca = "{files}/company-ca.pem"']
            await everything_works(toml(f"https://{INSIDE}/v1", *keys, credential=credential))
            sent = [request for peer in served.peers for request in peer.requests]
            assert any(request.startswith(b"POST /token ") for request in sent)
            assert any(b"authorization: Bearer fresh-token" in request for request in sent)

    asyncio.run(scene())


# ── error messages ──


def reported_errors(config: str) -> tuple[str, str]:
    """The error for a client, and the output of `dragoman check`."""

    async def scene() -> tuple[str, str]:
        async with running(config) as gateway:
            message = (await ask(gateway, CHAT, "up/m")).is_refusal(502)
        [finding] = await check(loads(config, env={}), {})
        assert not finding.ok
        return message, finding.message

    return asyncio.run(scene())


def test_an_unknown_certificate_issuer_is_reported(authority: trustme.CA) -> None:
    async def scene() -> None:
        async with wire(answering(), tls=tls_for(authority)) as served:
            for says in await asyncio.to_thread(reported_errors, toml(served.url)):
                assert "a TLS certificate from an unknown issuer" in says
                assert "ca = PATH" in says

    asyncio.run(scene())


@pytest.mark.parametrize("login", ["", "user:sk-wrong"])
def test_a_wrong_proxy_login_is_reported(login: str) -> None:
    async def scene() -> None:
        async with proxy(ForwardProxy({}, "user:password")) as relay:
            config = toml(f"https://{INSIDE}/v1", f'proxy = "{relay.url(login)}"')
            for says in await asyncio.to_thread(reported_errors, config):
                assert f"cannot be reached: the proxy {relay.url()}" in says
                assert "(HTTP 407)" in says
                assert "sk-wrong" not in says

    asyncio.run(scene())


COMPLAINTS = {
    'ca = "{files}/missing.pem"': (
        "ca in [upstreams.up] names the file {files}/missing.pem, which cannot be read: no such file"
    ),
    'ca = "{files}/empty.pem"': (
        "ca in [upstreams.up] names {files}/empty.pem, which holds no PEM certificates"
    ),
    'client_cert = "{files}/me.pem"': "names {files}/me.pem: that is no PEM certificate with the private key",
    'client_cert = {{ key = "{files}/me.key" }}': "has no cert: write",
    'client_cert = {{ cert = "{files}/me.pem", kay = "x" }}': 'has the unknown key "kay"',
    'proxy = "proxy.example:3128"': "proxy in [upstreams.up] must be a URL such as http://host:3128",
    'proxy = "ftp://me:sk-hidden@proxy.example"': "must be a URL such as",
    'proxy = "http://me:sk-hidden@proxy.example/path"': "must be a URL without a path",
}


@pytest.mark.parametrize("key", COMPLAINTS)
def test_an_unusable_setting_is_reported_when_the_config_is_read(key: str, files: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        loads(toml("https://x.example", key.format(files=files)), env={})
    assert COMPLAINTS[key].format(files=files) in caught.value.message
    assert "sk-hidden" not in caught.value.message


def test_a_key_with_a_password_is_reported(authority: trustme.CA, files: Path) -> None:
    from cryptography.hazmat.primitives import serialization as how

    key = how.load_pem_private_key((files / "me.key").read_bytes(), None)
    locked = key.private_bytes(
        how.Encoding.PEM, how.PrivateFormat.PKCS8, how.BestAvailableEncryption(b"secret")
    )
    (files / "locked.key").write_bytes(locked)
    keys = f'client_cert = {{ cert = "{files}/me.pem", key = "{files}/locked.key" }}'
    with pytest.raises(ConfigError, match="whose private key has a password; store it without one"):
        loads(toml("https://x.example", keys), env={})


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_a_variable_without_certificates_is_reported_at_the_start(variable: str) -> None:
    async def start(config: Config) -> None:
        await State(config, env={variable: "/nowhere.pem"}).close()

    with pytest.raises(
        ConfigError, match=f"variable {variable} names the file /nowhere.pem, which cannot be"
    ):
        asyncio.run(start(loads(toml("https://x.example"), env={})))
    asyncio.run(start(loads(toml("http://127.0.0.1:1"), env={})))


def test_a_renewed_certificate_is_used_after_a_reload(files: Path) -> None:
    config = toml("https://x.example", f'ca = "{files}/company-ca.pem"')
    before = loads(config, env={})
    trustme.CA().cert_pem.write_to_path(str(files / "company-ca.pem"))
    assert loads(config, env={}) != before


# ── responses ──


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "203 Fine"])
def test_every_2xx_status_is_a_success(status: str) -> None:
    async def scene() -> None:
        async with wire(answering(status)) as served, running(toml(served.url)) as gateway:
            got = await ask(gateway, CHAT, "up/m", stream=False)
            assert (got.status, got.said["stop"]) == (200, "end_turn")

    asyncio.run(scene())


def test_an_unknown_content_coding_is_an_error_that_names_it() -> None:
    async def scene() -> None:
        script = answering(headers=b"content-encoding: snappy\r\n")
        async with wire(script) as served, running(toml(served.url)) as gateway:
            message = (await ask(gateway, CHAT, "up/m")).is_refusal(502)
            assert "unknown content coding 'snappy'" in message

    asyncio.run(scene())
