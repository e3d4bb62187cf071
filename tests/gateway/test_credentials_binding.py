"""A credential is sent only to its own origin, in the header of its protocol."""

import pytest
from credential_places import full_report

from dragoman.credentials import BoundCredential, CredentialError, Token
from dragoman.credentials.secret import Secret

BASE = "https://api.example.com/v1"


def bound(key: str, protocol: str = "openai-chat", base_url: str = BASE) -> BoundCredential:
    return BoundCredential(Token(secret=Secret(key)), base_url, protocol)


@pytest.mark.parametrize(
    ("protocol", "base_url", "key", "headers"),
    [
        ("anthropic", BASE, "sk-ant-api03-x", {"x-api-key": "sk-ant-api03-x"}),
        ("anthropic", BASE, "sk-ant-oat01-x", {"authorization": "Bearer sk-ant-oat01-x"}),
        ("openai-chat", BASE, "sk-x", {"authorization": "Bearer sk-x"}),
        ("openai-responses", BASE, "sk-x", {"authorization": "Bearer sk-x"}),
        ("gemini", BASE, "AIza-x", {"x-goog-api-key": "AIza-x"}),
        ("gemini", BASE, "ya29.x", {"authorization": "Bearer ya29.x"}),
        ("openai-chat", "https://me.openai.azure.com/openai/v1", "k", {"api-key": "k"}),
        ("openai-responses", "https://me.openai.azure.com", "eyJx", {"authorization": "Bearer eyJx"}),
        ("openai-chat", "https://openai.azure.com.evil.example", "k", {"authorization": "Bearer k"}),
    ],
)
def test_each_protocol_has_its_header(
    protocol: str, base_url: str, key: str, headers: dict[str, str]
) -> None:
    assert bound(key, protocol, base_url).headers(base_url + "/models?beta=true") == headers


@pytest.mark.parametrize(
    ("header", "key", "headers"),
    [
        ("bearer", "k", {"authorization": "Bearer k"}),
        ("api-key", "k", {"api-key": "k"}),
        ("api-key", "eyJx", {"authorization": "Bearer eyJx"}),
        ("x-other", "k", {"x-other": "k"}),
    ],
)
def test_the_config_may_set_another_header(header: str, key: str, headers: dict[str, str]) -> None:
    credential = BoundCredential(Token(secret=Secret(key)), BASE, "anthropic", header)
    assert credential.headers(BASE) == headers


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com/other",
        "https://API.example.com:443/v1/chat/completions",
        "https://api.example.com/v1?x=1#y",
    ],
)
def test_the_same_origin_in_another_spelling_is_accepted(url: str) -> None:
    assert bound("k").headers(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com/v1",
        "https://api.example.com:8443/v1",
        "https://api.example.com.evil.org/v1",
        "https://evil.org/api.example.com",
        "https://api.example.com@evil.org/v1",
        "https://user@api.example.com/v1",
        "https://evil.org\\@api.example.com/v1",
        "https://xn--pi-7ba.example.com/v1",
        "//api.example.com/v1",
        "/v1/chat/completions",
        "",
        "https://api.example.com:99999/",
        "https://[::1/",
    ],
)
def test_any_other_origin_is_refused(url: str) -> None:
    credential = bound("sk-hidden")
    with pytest.raises(CredentialError, match=r"https://api.example.com:443 is not sent to") as caught:
        credential.headers(url)
    assert "sk-hidden" not in full_report(caught.value)
    assert "sk-hidden" not in repr(credential)


def test_an_international_host_name_equals_its_punycode() -> None:
    credential = bound("k", base_url="https://bücher.example/v1")
    for same in (
        "https://xn--bcher-kva.example/v1",
        "https://BÜCHER.example:443/",
        "https://XN--BCHER-KVA.example",
    ):
        assert credential.headers(same)
    for other in (
        "https://bucher.example/v1",
        "https://xn--bcher-kva.example.org",
        "https://bücher.example:444",
    ):
        with pytest.raises(CredentialError):
            credential.headers(other)


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example.com\\.evil.org",
        "https://api.example.com%2eevil.org",
        "https://api.example.com\n",
        "ftp://x",
    ],
)
def test_a_misleading_url_is_refused(url: str) -> None:
    with pytest.raises(CredentialError, match="an address without a host"):
        bound("k").headers(url)


def test_ports_and_loopback_addresses_are_distinguished() -> None:
    credential = bound("k", base_url="http://[::1]:8317/v1")
    assert credential.headers("http://[::1]:8317/v1/models")
    assert str(credential.origin) == "http://[::1]:8317"
    for other in ("http://127.0.0.1:8317/v1", "http://localhost:8317/v1", "http://[::1]/v1"):
        with pytest.raises(CredentialError):
            credential.headers(other)


def test_without_a_secret_no_header_is_sent() -> None:
    assert BoundCredential(Token(secret=None), BASE, "openai-chat").headers("https://other.example") == {}


@pytest.mark.parametrize("base_url", ["", "api.example.com/v1", "https://u:p@api.example.com"])
def test_a_base_url_without_a_plain_origin_is_refused(base_url: str) -> None:
    with pytest.raises(CredentialError, match="full URL"):
        bound("k", base_url=base_url)
