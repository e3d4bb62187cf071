"""The client against bytes: what is sent, what is read, and which connection is used again."""

import asyncio
import gzip
import zlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.wire import Peer, Script, Wire, play, wire

from dragoman.http.client import Broken, Client, CutOff, Disconnected, Malformed, Response, pool, response
from dragoman.http.client.connection import Connection

WORDS = b"every tool call arrives whole, valid and once"
MUCH = 2**30
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def saying(*answers: bytes) -> Script:
    """One answer for each request; after the last the connection is closed."""

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
    """What comes before a failure stays."""
    while piece := await answer.chunk():
        said.append(piece)


def chunked(*pieces: bytes, trailer: bytes = b"") -> bytes:
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n" + trailer + b"\r\n"


# ── what is sent ──


def test_a_request_is_what_it_says() -> None:
    async def scene(client: Client, served: Wire) -> None:
        url = f"{served.url}/v1/mödels/a b?x=1&y=ü#z"
        answer = await client.ask("POST", url, {"accept": "*/*", "user-agent": "me/1"}, b"{}")
        assert await got(answer) == b"ok"
        sent = served.peers[0].requests[0]
        assert sent == (
            b"POST /v1/m%C3%B6dels/a%20b?x=1&y=%C3%BC HTTP/1.1\r\n"
            b"host: 127.0.0.1:" + str(served.port).encode() + b"\r\n"
            b"user-agent: me/1\r\naccept: */*\r\ncontent-length: 2\r\n\r\n{}"
        )
        await got(await client.ask("GET", served.url))
        sent = served.peers[0].requests[1]
        assert sent.startswith(b"GET / HTTP/1.1\r\nhost: ")
        assert b"\r\nuser-agent: dragoman/" in sent
        assert b"content-length" not in sent
        await got(await client.ask("POST", served.url))
        assert served.peers[0].requests[2].endswith(b"\r\ncontent-length: 0\r\n\r\n")

    play(forever(), scene)


def test_what_always_goes_along_can_be_said_otherwise() -> None:
    async def run() -> None:
        always = {"accept": "a", "x-always": "b"}
        async with wire(forever()) as served, Client(always) as client:
            await got(await client.ask("GET", served.url, {"x-more": "c"}))
            await got(await client.ask("GET", served.url, {"accept": "d"}))
            first, second = served.peers[0].requests
            assert first.endswith(b"\r\naccept: a\r\nx-always: b\r\nx-more: c\r\n\r\n")
            assert second.endswith(b"\r\naccept: d\r\nx-always: b\r\n\r\n")

    asyncio.run(run())


def test_what_was_said_the_last_time_is_said_again_only_if_it_is_meant() -> None:
    async def scene(client: Client, served: Wire) -> None:
        headers = {"x-key": "one"}
        for key in ("one", "one", "two", "one"):
            headers["x-key"] = key
            await got(await client.ask("GET", served.url, headers))
        await got(await client.ask("GET", served.url))
        with pytest.raises(ValueError, match="cannot be sent"):
            await client.ask("GET", served.url, {"x-key": "\n"})
        await got(await client.ask("GET", served.url, {"x-key": "one"}))
        keys = [sent.partition(b"x-key: ")[2] for sent in served.peers[0].requests]
        assert keys == [key and key + b"\r\n\r\n" for key in (b"one", b"one", b"two", b"one", b"", b"one")]

    play(forever(), scene)


def test_a_login_in_the_address_is_shown() -> None:
    async def scene(client: Client, served: Wire) -> None:
        await got(await client.ask("GET", served.url.replace("//", "//me:s%40me@")))
        assert b"\r\nauthorization: Basic bWU6c0BtZQ==\r\n" in served.peers[0].requests[0]

    play(forever(), scene)


@pytest.mark.parametrize("size", [16 * 1024 - 1, 16 * 1024, 500_000, 3_000_000])
def test_bodies_of_every_size_arrive(size: int) -> None:
    async def scene(client: Client, served: Wire) -> None:
        body = (WORDS * (size // len(WORDS) + 1))[:size]
        for _ in range(2):
            assert await got(await client.ask("POST", f"{served.url}/ours", {}, body)) == b"ok"
        # Others on this machine may try this port, which was free a moment ago, and take us for somebody.
        asked = [[sent for sent in peer.requests if sent.startswith(b"POST /ours ")] for peer in served.peers]
        (requests,) = filter(None, asked)
        assert [sent.partition(b"\r\n\r\n")[2] == body for sent in requests] == [True, True]

    play(forever(), scene)


@pytest.mark.parametrize("headers", [{"x-key": "sk-hidden\r\nx: y"}, {"x-key": "sk-hidden\0"}])
def test_a_header_that_cannot_be_sent_is_not_shown(headers: dict[str, str]) -> None:
    async def scene(client: Client, served: Wire) -> None:
        with pytest.raises(ValueError, match="cannot be sent") as caught:
            await client.ask("GET", served.url, headers)
        assert "sk-hidden" not in str(caught.value)
        assert served.peers == []

    play(forever(), scene)


@pytest.mark.parametrize(
    "url", ["", "/v1", "ftp://x", "http://", "http://a b/", "http://x:0/", "http://x\r\n/"]
)
def test_an_address_that_is_none_is_told(url: str) -> None:
    async def scene() -> None:
        async with Client() as client:
            with pytest.raises(ValueError, match=r".") as caught:
                await client.ask("GET", url)
            assert not isinstance(caught.value, OSError)

    asyncio.run(scene())


# ── what is read ──

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
    "gzip after empty lines": (
        b"\r\n\r\nHTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(WORDS, mtime=0), WORDS
    ),
    "not coded": (b"HTTP/1.1 200 OK\r\n\r\ncontent-encoding: br\r\n\r\n", b"content-encoding: br\r\n\r\n"),
    "not coded, bare lines": (b"HTTP/1.1 200 OK\n\ncontent-encoding: gzip\n", b"content-encoding: gzip\n"),
    "odd coding": (b"HTTP/1.1 200 OK\r\ncontent-encoding: utf-8\r\ncontent-length: 2\r\n\r\nok", b"ok"),
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_whole_and_byte_by_byte(name: str) -> None:
    data, body = ANSWERS[name]

    async def scene(client: Client, served: Wire) -> None:
        for _ in range(2):
            answer = await client.ask("GET", served.url)
            assert await got(answer) == body
            assert await answer.chunk() == b""
            assert answer.ended

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
        assert await got(await client.ask("GET", served.url)) == body

    play(script, scene)


def test_the_head_is_read() -> None:
    head = b"HTTP/1.1 418 No\r\nRetry-After: 7\r\nX-Caf\xe9: \r\nX-NAME: Zo\xc3\xab\r\nx-name: b\xff\r\n\r\n"

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.ask("GET", served.url)
        assert answer.status == 418
        assert answer.headers == {"retry-after": "7", "x-name": "b\ufffd"}

    play(saying(head.replace(b"X-Caf\xe9: \r\n", b"")), scene)


def test_what_stands_around_a_head_is_no_part_of_it() -> None:
    said = b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + chunked(WORDS, trailer=b"X-Sum: 1\r\n")

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.ask("GET", served.url)
        assert "transfer-encoding" in answer.headers
        assert not {"link", "x-sum"} & answer.headers.keys()

    play(saying(said + OK), scene)


def test_the_first_bytes_of_a_body_may_be_all_that_is_wanted() -> None:
    async def scene(client: Client, served: Wire) -> None:
        answer = await client.ask("GET", served.url)
        assert await answer.read(9) == WORDS[:9]
        answer.close()
        assert answer.ended

    play(saying(chunked(WORDS)), scene)


def test_an_answer_to_head_has_no_body() -> None:
    async def scene(client: Client, served: Wire) -> None:
        for _ in range(2):
            answer = await client.ask("HEAD", served.url)
            assert answer.headers["content-length"] == "2"
            assert await got(answer) == b""
        assert len(served.peers) == 2

    play(forever(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"), scene)


def test_pieces_come_as_they_come() -> None:
    step = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for piece in (b"a", b"b"):
            await step.wait()
            step.clear()
            await peer.say(b"1\r\n%b\r\n" % piece)
        await peer.say(b"0\r\n\r\n")

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.ask("GET", served.url)
        for piece in (b"a", b"b"):
            step.set()
            assert await answer.chunk() == piece
        assert await answer.chunk() == b""

    play(script, scene)


@pytest.mark.parametrize("name", ANSWERS)
def test_poured_it_is_the_same(name: str) -> None:
    """Whoever takes it may stop for a while after any piece."""
    data, body = ANSWERS[name]

    async def script(peer: Peer) -> None:
        await peer.answer(*(data[i : i + 5] for i in range(0, len(data), 5)))
        await peer.hang_up()

    async def scene(client: Client, served: Wire) -> None:
        for every in (1, 3, MUCH):
            said: list[bytes] = []

            def take(piece: bytes, said: list[bytes] = said, every: int = every) -> bool:
                said.append(piece)
                return len(said) % every != 0

            answer = await client.ask("GET", served.url)
            while await answer.pour(take):
                assert len(said) % every == 0
            assert b"".join(said) == body
            assert answer.ended
            assert not await answer.pour(take)

    play(script, scene)


def test_nothing_is_lost_that_comes_before_a_task_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a body comes, read by read, in one turn of the event loop."""
    body, asked = b"seven words in one answer, all here", asyncio.Event()
    whole = Connection.data_received

    def byte_by_byte(self: Connection, data: bytes) -> None:
        for byte in data:
            whole(self, bytes([byte]))

    monkeypatch.setattr(Connection, "data_received", byte_by_byte)

    async def scene(client: Client, served: Wire) -> None:
        said: list[bytes] = []

        def take(piece: bytes) -> bool:
            said.append(piece)
            return False

        answer = await client.ask("GET", served.url)
        asked.set()
        while await answer.pour(take):
            pass
        assert b"".join(said) == body
        assert answer.ended

    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body))
        await asked.wait()
        peer.writer.write(body)

    play(script, scene)


@pytest.mark.parametrize("every", [1, MUCH])
def test_a_cut_is_told_to_who_had_it_poured(every: int) -> None:
    async def scene(client: Client, served: Wire) -> None:
        said: list[bytes] = []

        def take(piece: bytes) -> bool:
            said.append(piece)
            return len(said) % every != 0

        async def all_of(answer: Response) -> None:
            while await answer.pour(take):
                pass

        answer = await client.ask("GET", served.url)
        for _ in range(2):
            with pytest.raises(CutOff):
                await all_of(answer)
        assert b"".join(said) == WORDS[:-1]

    play(saying(CUT["measured"]), scene)


def test_whoever_is_poured_for_may_fail() -> None:
    def take(piece: bytes) -> bool:
        raise KeyError(piece)

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.ask("GET", served.url)
        with pytest.raises(KeyError):
            await answer.pour(take)
        answer.close()
        await asyncio.wait_for(served.peers[0].closed.wait(), 5)

    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n")

    play(script, scene)


# ── what is cut ──

CUT: dict[str, bytes] = {
    "measured": ANSWERS["measured"][0][:-1],
    "chunked": ANSWERS["chunked"][0][:-1],
    "last chunk": ANSWERS["chunked"][0][:-5],
    "chunk": ANSWERS["chunked"][0][:-8],
    "oddly chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nab",
}


@pytest.mark.parametrize("name", CUT)
def test_a_cut_body_is_never_an_end(name: str) -> None:
    async def scene(client: Client, served: Wire) -> None:
        answer = await client.ask("GET", served.url)
        for _ in range(2):
            with pytest.raises(CutOff):
                await got(answer)
        answer.leave()

    play(saying(CUT[name]), scene)


@pytest.mark.parametrize(
    "name", ["measured", "chunked", "trailed", "announced", "padded sizes", "bare lines"]
)
def test_no_beginning_of_an_answer_is_an_answer(name: str) -> None:
    data, _ = ANSWERS[name]
    cuts = iter(range(len(data)))

    async def script(peer: Peer) -> None:
        await peer.answer(data[: next(cuts)])
        await peer.hang_up()

    async def scene(client: Client, served: Wire) -> None:
        for cut in range(len(data)):
            with pytest.raises(Broken):
                await got(await client.ask("POST", served.url))
            assert len(served.peers) == cut + 1

    play(script, scene)


def test_what_came_before_the_cut_is_given() -> None:
    async def scene(client: Client, served: Wire) -> None:
        answer = await client.ask("GET", served.url)
        said: list[bytes] = []
        with pytest.raises(CutOff):
            await into(said, answer)
        assert b"".join(said) == WORDS[:-1]

    play(saying(CUT["measured"]), scene)


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_coded_body_that_stops_short_is_no_end(coding: str) -> None:
    data = ANSWERS[coding][0][:-3]

    async def scene(client: Client, served: Wire) -> None:
        with pytest.raises(Malformed, match="cut off"):
            await got(await client.ask("GET", served.url))

    play(saying(data), scene)


BROKEN: dict[str, bytes] = {
    "nonsense": b"SSH-2.0-OpenSSH_9.6\r\n",
    "another version": b"HTTP/2 200 OK\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    "length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
    "bad length": b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nab",
    "folded": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "spaced name": b"HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
    "upgrade": b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\nPRI",
    "endless head": b"HTTP/1.1 200 OK\r\n" + b"X: %b\r\n" % (b"y" * 1000) * 70,
    "endless line": b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000,
    "brotli": b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n\x0b",
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_http_is_refused(name: str) -> None:
    async def scene(client: Client, served: Wire) -> None:
        with pytest.raises(Malformed):
            await client.ask("GET", served.url)
        await asyncio.wait_for(served.peers[0].closed.wait(), 5)

    async def script(peer: Peer) -> None:
        await peer.answer(BROKEN[name])

    play(script, scene)


@pytest.mark.parametrize(
    "tail", [b"zz\r\n", b"2\r\nabXX", b"0\r\nX: " + b"y" * 200_000, b"2;" + b"e" * 200_000]
)
def test_a_body_that_goes_wrong_is_no_end(tail: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", tail)

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.ask("GET", served.url)
        said: list[bytes] = []
        with pytest.raises(Malformed):
            await into(said, answer)
        assert b"".join(said) in (b"a", b"aab")

    play(script, scene)


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Le"])
def test_closed_without_an_answer(said: bytes) -> None:
    async def scene(client: Client, served: Wire) -> None:
        for method in ("GET", "POST"):
            with pytest.raises(Disconnected):
                await client.ask(method, served.url)
        assert len(served.peers) == 2

    play(saying(said), scene)


# ── which connection is used again ──


def test_the_connection_used_last_is_used_again() -> None:
    async def scene(client: Client, served: Wire) -> None:
        first, second = [await client.ask("GET", served.url) for _ in range(2)]
        assert len(served.peers) == 2
        await got(second)
        await got(first)
        for path in ("/a", "/b"):
            await got(await client.ask("GET", served.url + path))
        assert [len(peer.requests) for peer in served.peers] == [3, 1]

    play(forever(), scene)


def test_as_many_addresses_as_one_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model's name may stand in the address: they are not all remembered, and share their connections."""
    monkeypatch.setattr(pool, "_MOST_PLACES", 3)

    async def scene(client: Client, served: Wire) -> None:
        for number in range(10):
            assert await got(await client.ask("GET", f"{served.url}/{number}")) == b"ok"
        assert len(client._places) <= 3
        assert [sent.split()[1] for sent in served.peers[0].requests] == [b"/%d" % n for n in range(10)]

    play(forever(), scene)


NOT_KEPT: dict[str, bytes] = {
    "close": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
    "old": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "more": OK + b"more",
    "twice": OK + OK,
    "closing and more": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok" + OK,
}


@pytest.mark.parametrize("name", NOT_KEPT)
def test_a_connection_is_not_used_again(name: str) -> None:
    """Above all not when bytes came that nobody asked for: they would be the next one's answer."""

    async def scene(client: Client, served: Wire) -> None:
        for count in (1, 2):
            assert await got(await client.ask("GET", served.url)) == b"ok"
            assert len(served.peers) == count

    play(forever(NOT_KEPT[name]), scene)


def test_bytes_out_of_turn_close_a_connection_that_lies_unused() -> None:
    speak = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(OK)
        await speak.wait()
        await peer.say(OK)

    async def scene(client: Client, served: Wire) -> None:
        await got(await client.ask("GET", served.url))
        speak.set()
        await asyncio.wait_for(served.peers[0].closed.wait(), 5)
        assert await got(await client.ask("GET", served.url)) == b"ok"
        assert len(served.peers) == 2

    play(script, scene)


def test_one_that_was_closed_while_it_lay_unused_is_not_used() -> None:
    async def scene(client: Client, served: Wire) -> None:
        for _ in range(3):
            assert await got(await client.ask("POST", served.url)) == b"ok"
            await asyncio.sleep(0.01)
        assert len(served.peers) == 3

    play(saying(OK), scene)


def test_a_question_is_asked_again_where_a_kept_connection_breaks() -> None:
    """A server may close what it kept just when a request comes. What changes nothing may be repeated."""

    async def script(peer: Peer) -> None:
        await peer.answer(OK)
        await peer.request()
        await peer.hang_up()

    async def scene(client: Client, served: Wire) -> None:
        for _ in range(2):
            assert await got(await client.ask("GET", served.url)) == b"ok"
        assert len(served.peers) == 2
        with pytest.raises(Disconnected):
            await client.ask("POST", served.url)
        assert len(served.peers) == 2

    play(script, scene)


def test_what_lies_unused_for_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_KEPT", 0.02)

    async def scene(client: Client, served: Wire) -> None:
        answers = [await client.ask("GET", served.url) for _ in range(2)]
        for answer in answers:
            await got(answer)
            await asyncio.sleep(0.005)
        for peer in served.peers:
            await asyncio.wait_for(peer.closed.wait(), 5)
        await got(await client.ask("GET", served.url))
        assert len(served.peers) == 3

    play(forever(), scene)


def test_an_answer_that_is_left_keeps_its_connection_if_it_ends_soon() -> None:
    end = asyncio.Event()

    async def script(peer: Peer) -> None:
        while True:
            await peer.answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n")
            await end.wait()
            await peer.say(b"2\r\n..\r\n", b"0\r\n\r\n")

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.ask("GET", served.url)
        assert await answer.chunk() == b"ok"
        answer.leave()
        assert answer.ended
        end.set()
        await asyncio.sleep(0.05)
        await client.ask("GET", served.url)
        assert len(served.peers) == 1

    play(script, scene)


@pytest.mark.parametrize("rest", [b"", b"%x\r\n" % 50_000 + b"x" * 40_000])
def test_an_answer_that_is_left_is_not_waited_for_long(rest: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response, "_LINGER", MUCH if rest else 0.01)

    left = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.answer(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n")
        await left.wait()
        await peer.say(rest)

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.ask("GET", served.url)
        assert await answer.chunk() == b"ok"
        answer.leave()
        left.set()
        await asyncio.wait_for(served.peers[0].closed.wait(), 5)

    play(script, scene)


def test_a_response_that_was_read_is_left_in_peace() -> None:
    async def scene(client: Client, served: Wire) -> None:
        answer = await client.ask("GET", served.url)
        await got(answer)
        again = await client.ask("GET", served.url)
        answer.close()
        answer.leave()
        assert await got(again) == b"ok"
        assert len(served.peers) == 1

    play(forever(), scene)
