"""URLs: equal origins compare equal, and misleading URLs are rejected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.transport.urls import parse


@pytest.mark.parametrize(
    ("text", "origin", "target"),
    [
        ("https://api.example.com", "https://api.example.com", "/"),
        ("HTTPS://API.Example.COM:443/v1", "https://api.example.com", "/v1"),
        ("http://host:8080?x=1", "http://host:8080", "/?x=1"),
        ("http://host:80/", "http://host", "/"),
        ("https://host:80/", "https://host:80", "/"),
        ("https://host:/v1", "https://host", "/v1"),
        ("http://my_server:1/a/../b;c=d?e=f&g=%20h#i", "http://my_server:1", "/a/../b;c=d?e=f&g=%20h"),
        ("http://h/models/a%2Fb:generate?alt=sse", "http://h", "/models/a%2Fb:generate?alt=sse"),
        ('http://h/a b"<>\\^`{|}?q=ü "#"', "http://h", "/a%20b%22%3C%3E%5C%5E%60%7B%7C%7D?q=%C3%BC%20%22"),
        ("http://127.0.0.1/", "http://127.0.0.1", "/"),
        ("http://[::1]:8317/v1", "http://[::1]:8317", "/v1"),
        ("http://[0:0:0:0:0:0:0:1]/", "http://[::1]", "/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example", "/"),
        ("https://BÜCHER.example/", "https://xn--bcher-kva.example", "/"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example", "/"),
    ],
)  # fmt: skip
def test_a_url_is_split_into_its_parts(text: str, origin: str, target: str) -> None:
    url = parse(text)
    assert (url.origin, url.target, url.login) == (origin, target, None)
    assert parse(url.origin).origin == origin


def test_hosts_and_ports_are_normalized() -> None:
    url = parse("http://[::1]:8317/v1")
    assert (url.host, url.port, url.bare, url.authority) == ("::1", 8317, "[::1]", "[::1]:8317")
    url = parse("https://Example.com/")
    assert (url.host, url.port, url.bare, url.authority) == ("example.com", 443, "example.com", "example.com")


def test_a_login_becomes_a_basic_auth_header() -> None:
    assert parse("https://me:s%40me@host").login == "Basic bWU6c0BtZQ=="
    assert parse("https://me@host").login == "Basic bWU6"
    assert parse("https://@host").login is not None


@pytest.mark.parametrize(
    "text",
    [
        "", "host", "//host", "/v1", "ftp://host", "http://", "http:///v1", "http://:80", "https://?x",
        "http://a b", "http://a%62c", "http://a\\b", "http://a|b", "http://a\tb", "http://a\r\nb/", "http://a/\n",
        "http://h:99999", "http://h:-1", "http://h:x", "http://h:0", "http://[::1", "http://[x]", "http://::1",
        "http://a\u2100b/", "https://" + "ü" * 64 + ".example",
    ],
)  # fmt: skip
def test_an_invalid_url_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


@given(st.text(max_size=30))
def test_every_accepted_url_is_legal_in_a_request_head(text: str) -> None:
    for whole in (f"http://{text}", f"https://h/{text}", f"https://h?{text}", f"https://{text}@h"):
        try:
            url = parse(whole)
        except ValueError:
            continue
        shown = f"{url.target} {url.authority} {url.login or ''}"
        assert shown.isascii()
        assert shown.isprintable()
        assert " " not in url.target
        assert url.target.startswith("/")
