"""The HTTP client against raw bytes: requests, responses, cut responses, reused connections."""

import asyncio
import gzip
import random
import zlib
from collections.abc import Callable
from itertools import pairwise

import brotli
import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st
from support.raw_server import Peer, Script, Wire, play, wire

from dragoman.transport.client import (
    Broken,
    Client,
    CutOff,
    Disconnected,
    Malformed,
    Response,
    Silent,
    UnknownCoding,
    open_client,
    response,
)

WORDS = b"every tool call arrives whole, valid and once"
MUCH = 2**30
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def saying(*answers: bytes) -> Script:
    """One answer per request. The connection closes after the last."""

    async def script(peer: Peer) -> None:
        for answer in answers:
            await peer.answer(answer)
        await peer.hang_up()

    return script


def forever(answer: bytes = OK) -> Script:
    async def script(peer: Peer) -> None:
        while True:
            await peer.answer(answer)

    return script


async def got(answer: Response) -> bytes:
    return await answer.read(MUCH)


async def into(said: list[bytes], answer: Response) -> None:
    """Collect chunks in `said`, which keeps those before a failure."""
    while piece := await answer.chunk():
        said.append(piece)


def chunked(*pieces: bytes, trailer: bytes = b"") -> bytes:
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n" + trailer + b"\r\n"


# ── requests ──


def test_a_request_has_its_method_path_headers_and_body() -> None:
    async def scene(client: Client, served: Wire) -> None:
        url = f"{served.url}/v1/mödels/a b?x=1&y=ü#z"
        answer = await client.request("POST", url, {"Accept": "*/*", "user-agent": "me/1"}, b"{}")
        assert await got(answer) == b"ok"
        await got(await client.request("GET", served.url))
        posted, asked = served.peers[0].requests
        assert posted.startswith(b"POST /v1/m%C3%B6dels/a%20b?x=1&y=%C3%BC HTTP/1.1\r\n")
        assert fields_of(posted)["host"] == f"127.0.0.1:{served.port}"
        assert fields_of(posted)["user-agent"] == "me/1"
        assert b"\r\naccept: */*\r\n" in posted, "names are in lower case"
        assert fields_of(posted)["content-length"] == "2"
        assert posted.endswith(b"\r\n\r\n{}")
        assert asked.startswith(b"GET / HTTP/1.1\r\n")
        assert fields_of(posted).keys() == {"host", "accept", "user-agent", "content-length"}
        assert fields_of(asked).keys() == {"host", "user-agent"}
        assert fields_of(asked)["user-agent"].startswith("dragoman/")
        assert "content-length" not in fields_of(asked)

    play(forever(), scene)


def fields_of(sent: bytes) -> dict[str, str]:
    lines = sent.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    pairs = (line.split(": ", 1) for line in lines)
    return {name.lower(): value for name, value in pairs}


def test_default_headers_can_be_overridden() -> None:
    async def run() -> None:
        always = {"accept": "a", "x-always": "b"}
        async with wire(forever()) as served, open_client(always) as client:
            await got(await client.request("GET", served.url, {"x-more": "c"}))
            await got(await client.request("GET", served.url, {"accept": "d"}))
            first, second = map(fields_of, served.peers[0].requests)
            assert (first["accept"], first["x-always"], first["x-more"]) == ("a", "b", "c")
            assert (second["accept"], second["x-always"], second.get("x-more")) == ("d", "b", None)

    asyncio.run(run())


def test_a_login_in_the_url_is_sent() -> None:
    async def scene(client: Client, served: Wire) -> None:
        await got(await client.request("GET", served.url.replace("//", "//me:s%40me@")))
        assert b"\r\nauthorization: Basic bWU6c0BtZQ==\r\n" in served.peers[0].requests[0]

    play(forever(), scene)


@pytest.mark.parametrize("size", [16 * 1024 - 1, 16 * 1024, 500_000, 3_000_000])
def test_bodies_of_every_size_arrive(size: int) -> None:
    async def scene(client: Client, served: Wire) -> None:
        """libcurl would send `expect` for a long body and wait for a reply."""
        body = (WORDS * (size // len(WORDS) + 1))[:size]
        for _ in range(2):
            assert await got(await client.request("POST", f"{served.url}/ours", {}, body)) == b"ok"
        # Another program on this machine may connect to this port, which was free a moment ago.
        asked = [[sent for sent in peer.requests if sent.startswith(b"POST /ours ")] for peer in served.peers]
        (requests,) = filter(None, asked)
        assert [sent.partition(b"\r\n\r\n")[2] == body for sent in requests] == [True, True]

    play(forever(), scene)


@pytest.mark.parametrize("headers", [{"x-key": "sk-hidden\r\nx: y"}, {"x-key": "sk-hidden\0"}])
def test_the_error_for_an_illegal_header_hides_its_value(headers: dict[str, str]) -> None:
    async def scene(client: Client, served: Wire) -> None:
        with pytest.raises(ValueError, match="cannot be sent") as caught:
            await client.request("GET", served.url, headers)
        assert "sk-hidden" not in str(caught.value)
        assert served.peers == []

    play(forever(), scene)


@pytest.mark.parametrize(
    "url", ["", "/v1", "ftp://x", "http://", "http://a b/", "http://x:0/", "http://x\r\n/"]
)
def test_an_invalid_url_is_an_error(url: str) -> None:
    async def scene() -> None:
        async with open_client() as client:
            with pytest.raises(ValueError, match=r".") as caught:
                await client.request("GET", url)
            assert not isinstance(caught.value, OSError)

    asyncio.run(scene())


# ── responses ──

ANSWERS: dict[str, tuple[bytes, bytes]] = {
    "measured": (b"HTTP/1.1 200 OK\r\nContent-Length: 45\r\nX: y\r\n\r\n" + WORDS, WORDS),
    "empty": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
    "chunked": (chunked(WORDS[:7], WORDS[7:]), WORDS),
    "trailed": (chunked(WORDS, trailer=b"X-Sum: 1\r\n"), WORDS),
    "until close": (b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n" + WORDS, WORDS),
    "old": (b"HTTP/1.0 200 OK\r\n\r\n" + WORDS, WORDS),
    "announced": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + OK, b"ok"),
    "no content": (b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", b""),
    "not modified": (b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", b""),
    "bare lines": (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", b"ok"),
    "no reason": (b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    "folded": (b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    "padded sizes": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2  \r\nok\r\n0\r\n\r\n", b"ok"
    ),
    "gzip": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: GZip\r\n\r\n" + gzip.compress(WORDS, mtime=0), WORDS
    ),
    "deflate": (b"HTTP/1.1 200 OK\r\ncontent-encoding: deflate\r\n\r\n" + zlib.compress(WORDS), WORDS),
    "announced gzip": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
        + gzip.compress(WORDS, mtime=0), WORDS
    ),
    "bare deflate": (
        b"HTTP/1.1 200 OK\r\ncontent-encoding: deflate\r\n\r\n" + zlib.compress(WORDS)[2:-4], WORDS
    ),
    "not coded at all": (
        b"HTTP/1.1 200 OK\r\ncontent-encoding: identity\r\ncontent-length: 2\r\n\r\nok", b"ok"
    ),
    "not coded": (b"HTTP/1.1 200 OK\r\n\r\ncontent-encoding: br\r\n\r\n", b"content-encoding: br\r\n\r\n"),
    "not coded, bare lines": (b"HTTP/1.1 200 OK\n\ncontent-encoding: gzip\n", b"content-encoding: gzip\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_responses_are_the_same_whole_and_byte_by_byte(name: str) -> None:
    data, body = ANSWERS[name]

    async def scene(client: Client, served: Wire) -> None:
        for _ in range(2):
            answer = await client.request("GET", served.url)
            assert await got(answer) == body
            assert await answer.chunk() == b""

    async def script(peer: Peer) -> None:
        await peer.request()
        pieces = [data] if len(served) == 0 else [data[i : i + 1] for i in range(len(data))]
        served.append(name)
        await peer.say(*pieces)
        await peer.hang_up()

    served: list[str] = []
    play(script, scene)


@settings(max_examples=60)
@given(st.sampled_from(sorted(ANSWERS)), st.lists(st.integers(0, 150), max_size=6))
def test_every_chunking_gives_the_same(name: str, at: list[int]) -> None:
    data, body = ANSWERS[name]
    cuts = sorted({0, len(data), *(cut for cut in at if cut < len(data))})

    async def script(peer: Peer) -> None:
        await peer.answer(*(data[a:b] for a, b in pairwise(cuts)))
        await peer.hang_up()

    async def scene(client: Client, served: Wire) -> None:
        assert await got(await client.request("GET", served.url)) == body

    play(script, scene)


def test_status_and_headers_are_read() -> None:
    head = b"HTTP/1.1 418 No\r\nRetry-After: 7\r\nX-NAME: Joe\r\ncontent-length: 0\r\nx-odd: b\xff\r\n\r\n"

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("GET", served.url)
        assert answer.status == 418
        assert answer.headers["retry-after"] == "7"
        assert answer.headers["x-name"] == "Joe"

    play(saying(head), scene)


# Two pieces of one body, each flushed by its encoder.
FLUSHED: dict[str, tuple[bytes, bytes]] = {
    "br": (b"\x0b\x05\x80data: one\n\n", b"P\x00\x80_Z\xe1\x8d\xeeN\x11\xa2J\x04`\x0b\x03"),
    "zstd": (b"(\xb5/\xfd\x00XX\x00\x00data: one\n\n", b"Y\x00\x00data: two\n\n"),
}
for coding, bits in (("gzip", 31), ("x-gzip", 31), ("deflate", 15)):
    _made = zlib.compressobj(wbits=bits)
    FLUSHED[coding] = (
        _made.compress(b"data: one\n\n") + _made.flush(zlib.Z_SYNC_FLUSH),
        _made.compress(b"data: two\n\n") + _made.flush(),
    )


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstd.compress
}  # fmt: skip


@pytest.mark.parametrize("coding", FLUSHED)
def test_a_flushed_piece_of_a_compressed_body_arrives_when_it_is_sent(coding: str) -> None:
    step = asyncio.Event()
    first, second = FLUSHED[coding]

    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\ncontent-encoding: %b\r\n\r\n" % coding.encode() + first)
        await step.wait()
        await peer.say(second)
        await peer.hang_up()

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("GET", served.url)
        assert await asyncio.wait_for(answer.chunk(), 30) == b"data: one\n\n"
        step.set()
        assert await got(answer) == b"data: two\n\n"

    play(script, scene)


@pytest.mark.parametrize("coding", FLUSHED)
def test_a_cut_compressed_body_is_an_error(coding: str) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: %b\r\n\r\n" % coding.encode()

    async def scene(client: Client, served: Wire) -> None:
        with pytest.raises(CutOff):
            await got(await client.request("GET", served.url))

    play(saying(head + FLUSHED[coding][0]), scene)


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "br", "zstd"])
def test_a_body_that_does_not_match_its_content_encoding_is_an_error(coding: str) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: %b\r\ncontent-length: 45\r\n\r\n" % coding.encode()

    async def scene(client: Client, served: Wire) -> None:
        with pytest.raises(Broken):
            await got(await client.request("GET", served.url))

    play(saying(head + b"\xff" * 45), scene)


@pytest.mark.parametrize("coding", ["snappy", "gzip, br", "compress", "utf-8"])
def test_an_unknown_content_coding_is_named_and_never_read(coding: str) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: %b\r\ncontent-length: 9\r\n\r\n{}" % coding.encode()

    async def script(peer: Peer) -> None:
        await peer.answer(head)

    async def scene(client: Client, served: Wire) -> None:
        with pytest.raises(UnknownCoding, match=f"'{coding}'"):
            await client.request("GET", served.url)
        await asyncio.wait_for(served.peers[0].closed.wait(), 30)

    play(script, scene)


@pytest.mark.parametrize("coding", PACKED)
def test_a_compressed_body_grows_in_small_pieces(coding: str) -> None:
    """A caller with a size limit can stop before a bomb of some kilobytes becomes fifty megabytes."""
    bomb = PACKED[coding](bytes(50_000_000))
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: %b\r\ncontent-length: %d\r\n\r\n"

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("GET", served.url)
        assert 0 < len(await answer.chunk()) <= 64 * 1024
        await answer.close()

    play(saying(head % (coding.encode(), len(bomb)) + bomb), scene)


@pytest.mark.parametrize("coding", PACKED)
def test_a_long_compressed_body_is_whole(coding: str) -> None:
    words = b"".join(b"%d " % number for number in range(200_000))
    packed = PACKED[coding](words)
    if coding in ("gzip", "zstd"):  # several gzip members are one body
        packed = PACKED[coding](words[:9]) + PACKED[coding](words[9:])
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: %b\r\ncontent-length: %d\r\n\r\n"

    async def scene(client: Client, served: Wire) -> None:
        assert await got(await client.request("GET", served.url)) == words

    play(saying(head % (coding.encode(), len(packed)) + packed), scene)


def test_bytes_around_a_head_are_ignored() -> None:
    said = b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + chunked(WORDS, trailer=b"X-Sum: 1\r\n")

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("GET", served.url)
        assert "transfer-encoding" in answer.headers
        assert not {"link", "x-sum"} & answer.headers.keys()

    play(saying(said + OK), scene)


def test_a_caller_may_read_only_the_first_bytes_of_a_body() -> None:
    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("GET", served.url)
        assert await answer.read(9) == WORDS[:9]
        await answer.close()

    play(saying(chunked(WORDS)), scene)


def test_chunks_arrive_when_they_are_sent() -> None:
    step = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for piece in (b"a", b"b"):
            await step.wait()
            step.clear()
            await peer.say(b"1\r\n%b\r\n" % piece)
        await peer.say(b"0\r\n\r\n")

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("GET", served.url)
        for piece in (b"a", b"b"):
            step.set()
            assert await answer.chunk() == piece
        assert await answer.chunk() == b""

    play(script, scene)


# ── cut responses ──

CUT: dict[str, bytes] = {
    "measured": ANSWERS["measured"][0][:-1],
    "chunked": ANSWERS["chunked"][0][:-1],
    "last chunk": ANSWERS["chunked"][0][:-5],
    "chunk": ANSWERS["chunked"][0][:-8],
}


@pytest.mark.parametrize("name", CUT)
def test_a_cut_body_is_an_error(name: str) -> None:
    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("GET", served.url)
        for _ in range(2):
            with pytest.raises(CutOff):
                await got(answer)
        answer.release()

    play(saying(CUT[name]), scene)


@pytest.mark.parametrize(
    "name", ["measured", "chunked", "trailed", "announced", "padded sizes", "bare lines"]
)
def test_no_prefix_of_a_response_is_a_response(name: str) -> None:
    data, _ = ANSWERS[name]
    cuts = iter(range(len(data)))

    async def script(peer: Peer) -> None:
        await peer.answer(data[: next(cuts)])
        await peer.hang_up()

    async def scene(client: Client, served: Wire) -> None:
        for cut in range(len(data)):
            with pytest.raises(Broken):
                await got(await client.request("POST", served.url))
            assert len(served.peers) == cut + 1

    play(script, scene)


def test_bytes_before_the_cut_are_delivered() -> None:
    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("GET", served.url)
        said: list[bytes] = []
        with pytest.raises(CutOff):
            await into(said, answer)
        assert b"".join(said) == WORDS[:-1]

    play(saying(CUT["measured"]), scene)


BROKEN: dict[str, bytes] = {
    "nonsense": b"SSH-2.0-OpenSSH_9.6\r\n",
    "another version": b"HTTP/2 200 OK\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    "bad length": b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nab",
    "spaced name": b"HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
    "upgrade": b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nPRI",
    "endless head": b"HTTP/1.1 200 OK\r\n" + b"X: %b\r\n" % (b"y" * 1000) * 700,
    "endless line": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 700_000,
    "a flood of headers": b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 1000 + b"\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_reply_that_is_not_http_is_an_error(name: str) -> None:
    async def scene(client: Client, served: Wire) -> None:
        with pytest.raises(Malformed):
            await client.request("GET", served.url)
        await asyncio.wait_for(served.peers[0].closed.wait(), 30)

    async def script(peer: Peer) -> None:
        await peer.answer(BROKEN[name])

    play(script, scene)


@pytest.mark.parametrize("tail", [b"zz\r\n", b"2\r\nabXX", b"0\r\nX: " + b"y" * 200_000])
def test_a_malformed_body_is_an_error(tail: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", tail)

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("GET", served.url)
        said: list[bytes] = []
        with pytest.raises(Broken):
            await into(said, answer)
        assert b"".join(said) in (b"a", b"aab")

    play(script, scene)


def test_an_endless_chunk_extension_times_out() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        while not peer.writer.is_closing():
            await peer.say(b"2;" + b"e" * 200_000)
            await asyncio.sleep(0.01)

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("GET", served.url, idle_timeout=0.1)
        said: list[bytes] = []
        with pytest.raises(Silent):
            await into(said, answer)
        assert b"".join(said) == b"a"

    play(script, scene)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Le"])
def test_a_connection_closed_without_a_response_is_an_error(said: bytes) -> None:
    async def scene(client: Client, served: Wire) -> None:
        for method in ("GET", "POST"):
            with pytest.raises(Disconnected):
                await client.request(method, served.url)
        assert len(served.peers) == 2

    play(saying(said), scene)


# ── reused connections ──


def test_a_connection_is_reused() -> None:
    async def scene(client: Client, served: Wire) -> None:
        for path in ("/a", "/b", "/c"):
            assert await got(await client.request("POST", served.url + path, {}, b"{}")) == b"ok"
        assert [len(peer.requests) for peer in served.peers] == [3]

    play(forever(), scene)


NOT_KEPT: dict[str, bytes] = {
    "close": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
    "old": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "more": OK + b"more",
    "twice": OK + OK,
    "closing and more": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok" + OK,
}


@pytest.mark.parametrize("name", NOT_KEPT)
def test_a_connection_is_not_reused(name: str) -> None:
    """Unrequested bytes would be taken for the response to the next request."""

    async def scene(client: Client, served: Wire) -> None:
        for count in (1, 2):
            assert await got(await client.request("GET", served.url)) == b"ok"
            assert len(served.peers) == count

    play(forever(NOT_KEPT[name]), scene)


def test_a_connection_with_unrequested_bytes_is_not_reused() -> None:
    speak, spoken = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(OK)
        await speak.wait()
        await peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nno")
        spoken.set()

    async def scene(client: Client, served: Wire) -> None:
        await got(await client.request("GET", served.url))
        speak.set()
        await spoken.wait()
        assert await got(await client.request("GET", served.url)) == b"ok"
        assert len(served.peers) == 2
        await asyncio.wait_for(served.peers[0].closed.wait(), 30)

    play(script, scene)


def test_a_connection_that_closed_while_idle_is_not_reused() -> None:
    async def scene(client: Client, served: Wire) -> None:
        for _ in range(3):
            assert await got(await client.request("POST", served.url)) == b"ok"
            await asyncio.sleep(0.01)
        assert len(served.peers) == 3

    play(saying(OK), scene)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_is_retried_once_if_a_reused_connection_breaks(method: str) -> None:
    """A server may close an idle connection just when a request arrives."""

    async def script(peer: Peer) -> None:
        await peer.answer(OK)
        await peer.request()
        await peer.hang_up()

    async def scene(client: Client, served: Wire) -> None:
        for count in (1, 2, 3):
            assert await got(await client.request(method, served.url, {}, b"{}")) == b"ok"
            assert len(served.peers) == count

    play(script, scene)


def test_a_retried_request_is_not_retried_again() -> None:
    """The retry uses a new connection, even if other idle connections exist."""
    good = True

    async def script(peer: Peer) -> None:
        await peer.request()
        if good:
            await peer.say(OK)
            await peer.request()
        await peer.hang_up()

    async def scene(client: Client, served: Wire) -> None:
        nonlocal good
        answers = await asyncio.gather(*[client.request("POST", served.url) for _ in range(5)])
        for answer in answers:
            await got(answer)
        assert await got(await client.request("POST", served.url)) == b"ok"
        good = False
        connections = len(served.peers)
        with pytest.raises(Disconnected):
            await client.request("POST", served.url)
        assert len(served.peers) == connections + 1

    play(script, scene)


def test_connections_closed_at_random_moments_lose_no_request() -> None:
    dice = random.Random(7)

    async def script(peer: Peer) -> None:
        while True:
            await peer.answer(OK)
            if dice.random() < 0.5:
                await asyncio.sleep(dice.random() * 0.004)
                peer.writer.transport.abort() if dice.random() < 0.5 else peer.writer.close()
                return

    async def ask(client: Client, served: Wire) -> None:
        for _ in range(100):
            assert await got(await client.request("POST", served.url, {}, b"{}")) == b"ok"
            await asyncio.sleep(dice.random() * 0.003)

    async def scene(client: Client, served: Wire) -> None:
        await asyncio.gather(*[ask(client, served) for _ in range(5)])

    play(script, scene)


def test_an_abandoned_response_keeps_its_connection_if_it_ends_soon() -> None:
    end = asyncio.Event()

    async def script(peer: Peer) -> None:
        while True:
            await peer.answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n")
            await end.wait()
            await peer.say(b"2\r\n..\r\n", b"0\r\n\r\n")

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("GET", served.url)
        assert await answer.chunk() == b"ok"
        answer.release()
        end.set()
        await asyncio.sleep(0.05)
        await client.request("GET", served.url)
        assert len(served.peers) == 1

    play(script, scene)


@pytest.mark.parametrize("rest", [b"", b"%x\r\n" % 50_000 + b"x" * 40_000])
def test_an_abandoned_response_is_not_awaited_for_long(rest: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response, "_LINGER", MUCH if rest else 0.01)

    left = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n")
        await left.wait()
        await peer.say(rest)

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("GET", served.url)
        assert await answer.chunk() == b"ok"
        answer.release()
        left.set()
        await asyncio.wait_for(served.peers[0].closed.wait(), 30)

    play(script, scene)


def test_closing_a_response_that_was_read_changes_nothing() -> None:
    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("GET", served.url)
        await got(answer)
        again = await client.request("GET", served.url)
        await answer.close()
        answer.release()
        assert await got(again) == b"ok"
        assert len(served.peers) == 1

    play(forever(), scene)
