"""Malicious requests: path traversal, odd queries, too many values, content sniffing."""

import socket
from collections.abc import Iterator
from urllib.parse import quote
from urllib.request import urlopen

import pytest
from support.gateways import Gateway, Loop, gateway
from support.plain_http import call, post
from support.scripted_upstream import ScriptedUpstream, in_background

ASKED = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with in_background(ScriptedUpstream()) as served:
        yield served


@pytest.fixture(scope="module")
def served(upstream: ScriptedUpstream) -> Iterator[Gateway]:
    loop = Loop()
    config = "[server]\nretries = 0\n"
    for name, protocol in (("gem", "gemini"), ("chat", "openai-chat")):
        config += f'[upstreams.{name}]\nprotocol = "{protocol}"\nbase_url = "{upstream.url}"\n'
        config += 'credential = "env:KEY"\n'
    with gateway(config, loop, {"KEY": "sk-upstream-key"}) as served:
        yield served
    loop.close()


@pytest.mark.parametrize("name", ["x/../../admin", "../../../admin", "x/./y", "x//y"])
def test_a_model_name_cannot_leave_its_path(name: str, served: Gateway, upstream: ScriptedUpstream) -> None:
    upstream.seen.clear()
    anthropic = post(
        f"{served.url}/v1/messages", {"model": f"gem/{name}", "max_tokens": 9, "messages": ASKED}
    )
    chat = post(f"{served.url}/v1/chat/completions", {"model": f"gem/{name}", "messages": ASKED})
    contents = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}
    gemini = post(f"{served.url}/v1beta/models/{quote(f'gem/{name}', safe='')}:generateContent", contents)
    count = post(f"{served.url}/v1/messages/count_tokens", {"model": f"gem/{name}", "messages": ASKED})
    assert [anthropic.status, chat.status, gemini.status] == [400, 400, 400]
    assert anthropic.json["error"]["type"] == "invalid_request_error"
    assert chat.json["error"]["type"] == "invalid_request_error"
    assert gemini.json["error"]["status"] == "INVALID_ARGUMENT"
    assert "model" in anthropic.json["error"]["message"]
    assert count.status in (200, 400, 431)
    assert not upstream.seen


# Views.

QUERIES = ["since", "before", "cursor", "client", "profile", "model", "status", "rule", "slow", "failed"]
QUERIES += ["mended", "q", "limit"]
VALUES = {
    "empty": b"",
    "negative": b"-1",
    "huge": b"9" * 5000,
    "large": b"9223372036854775808",
    "exponent": b"1e400",
    "nan": b"nan",
    "words": b"many+" * 2000,
    "long": b"x" * 20_000,
    "nul": b"a%00b",
    "not-utf-8": b"%ff%fe",
    "raw-bytes": b"\xff\xfe",
    "lines": b"a%0d%0ab%1b",
    "digits": b"%C2%B2%D9%A3",
    "stars": b"*a" * 2000,
    "brackets": b"[" * 2000,
}


def raw(served: Gateway, target: bytes) -> tuple[int, bytes]:
    """The status and the whole answer to a GET with a raw request target."""
    with socket.create_connection(("127.0.0.1", int(served.url.rpartition(":")[2])), timeout=20) as sock:
        sock.sendall(b"GET %b HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n" % target)
        answer = b"".join(iter(lambda: sock.recv(65536), b""))
    return int(answer.split(b" ", 2)[1]), answer


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_answered_or_refused(name: str, value: bytes, served: Gateway) -> None:
    for query in (b"%b=%b" % (name.encode(), value), b"%b=%b&%b=1" % (name.encode(), value, name.encode())):
        status, answer = raw(served, b"/exchanges?" + query)
        assert status in (200, 400, 431), answer
        # Non-ASCII bytes are refused before the name is parsed.
        assert status in (200, 431) or name.encode() in answer or not value.isascii()


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("path", ["/exchanges/%b", "/exchanges/%b/bytes", "/v1/models/%b", "/inspector/%b"])
def test_a_name_in_a_path_is_answered_or_refused(path: str, value: bytes, served: Gateway) -> None:
    status, answer = raw(served, path.encode() % value)
    assert status in (200, 308, 400, 404, 431), answer


def test_too_many_search_words_are_refused(served: Gateway) -> None:
    got = call(f"{served.url}/exchanges?q={'+'.join(map(str, range(33)))}")
    assert got.status == 400
    assert got.json["error"]["message"] == "q has 33 words; at most 32 are allowed"
    assert call(f"{served.url}/exchanges?q={'+'.join(map(str, range(32)))}").status == 200


ANSWERS = [
    ("GET", "/"),
    ("GET", "/healthz"),
    ("GET", "/metrics"),
    ("GET", "/v1/models"),
    ("GET", "/v1beta/models"),
    ("GET", "/v1/models/gem/x"),
    ("GET", "/exchanges"),
    ("GET", "/exchanges?limit=x"),
    ("GET", "/exchanges/none"),
    ("GET", "/exchanges/none/bytes"),
    ("GET", "/inspector"),
    ("GET", "/inspector/"),
    ("GET", "/inspector/none"),
    ("GET", "/none"),
    ("PUT", "/v1/messages"),
    ("POST", "/v1/messages"),
    ("POST", "/v1/messages/count_tokens"),
]


@pytest.mark.parametrize(("method", "path"), ANSWERS)
def test_answers_forbid_content_sniffing(method: str, path: str, served: Gateway) -> None:
    got = call(served.url + path, method, b"{" if method == "POST" else None)
    assert got.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("stream", [False, True])
def test_model_answers_forbid_content_sniffing(stream: bool, served: Gateway) -> None:
    body = {"model": "chat/demo", "messages": ASKED, "stream": stream}
    got = post(f"{served.url}/v1/chat/completions", body)
    assert got.status == 200
    assert got.headers["x-content-type-options"] == "nosniff"
    id = got.headers["x-dragoman-exchange"]
    for view in ("", "/bytes", "/recording"):
        seen = call(f"{served.url}/exchanges/{id}{view}")
        assert (seen.status, seen.headers["x-content-type-options"]) == (200, "nosniff")


def test_the_live_stream_forbids_content_sniffing(served: Gateway) -> None:
    with urlopen(f"{served.url}/exchanges/live", timeout=10) as live:
        assert live.headers["x-content-type-options"] == "nosniff"
