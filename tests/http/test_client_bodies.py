"""Bodies in pieces: what arrives is the pieces one after another, however few a socket takes at once."""

import asyncio
import ssl

import pytest
import trustme
from support.wire import Peer, Wire, play, wire

from dragoman.http.client import Body, Client
from dragoman.http.client.connection import Connection

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
LETTERS = bytes(range(256)) * 4_000


async def answers(peer: Peer) -> None:
    while True:
        await peer.answer(OK)


async def asked(client: Client, url: str, body: Body, method: str = "POST") -> None:
    assert await (await client.ask(method, url, {}, body)).read(9) == b"ok"


def bodies_of(served: Wire) -> list[bytes]:
    return [sent.partition(b"\r\n\r\n")[2] for peer in served.peers for sent in peer.requests]


def cut(data: bytes, size: int) -> list[bytes | memoryview]:
    """Every other piece is a view."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return [memoryview(piece) if at % 2 else piece for at, piece in enumerate(pieces)]


PIECES: dict[str, list[bytes | memoryview]] = {
    "none": [],
    "empty": [b"", memoryview(b"")],
    "few": [b"one ", memoryview(b"a two b")[2:5], b"", b" three"],
    "long": [LETTERS[:300_000], b"", memoryview(LETTERS)[7:100_000]],
    "a large one": [LETTERS * 2, b"end"],
    "many": cut(LETTERS[:200_000], 30),
    "many and large": cut(LETTERS * 3, 500),
}


@pytest.mark.parametrize("name", PIECES)
def test_pieces_arrive_one_after_another(name: str) -> None:
    async def scene(client: Client, served: Wire) -> None:
        for _ in range(2):
            await asked(client, served.url, PIECES[name])
        assert bodies_of(served) == [b"".join(PIECES[name])] * 2
        assert len(served.peers) == 1

    play(answers, scene)


@pytest.mark.parametrize("name", ["few", "long", "many", "many and large"])
def test_pieces_over_tls(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    known = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(str(known))

    async def run() -> None:
        async with wire(answers, tls=context) as served, Client() as client:
            await asked(client, served.url, PIECES[name])
            assert bodies_of(served) == [b"".join(PIECES[name])]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(known))
        asyncio.run(run())


def test_pieces_that_are_taken_slowly() -> None:
    """What the socket does not take waits, in its order, and does not pile up."""
    pieces = cut(LETTERS * 25, 100_000)

    async def script(peer: Peer) -> None:
        while True:
            peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await asyncio.sleep(0.05)
            peer.writer.transport.resume_reading()  # type: ignore[attr-defined]
            await peer.answer(OK)

    async def scene(client: Client, served: Wire) -> None:
        held: list[int] = []

        def counted(self: Connection, portion: list[bytes | memoryview], size: int) -> None:
            unwatched(self, portion, size)
            held.append(self.transport.get_write_buffer_size())

        unwatched = Connection.send
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Connection, "send", counted)
            for _ in range(2):
                await asked(client, served.url, pieces)
        assert bodies_of(served) == [LETTERS * 25] * 2
        assert 0 < max(held) < 1024 * 1024

    play(script, scene)


def test_pieces_are_sent_again_where_a_kept_connection_breaks() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(OK)
        await peer.request()
        await peer.hang_up()

    async def scene(client: Client, served: Wire) -> None:
        for name in ("few", "long"):
            await asked(client, served.url, PIECES[name], "GET")
        few, long = b"".join(PIECES["few"]), b"".join(PIECES["long"])
        assert bodies_of(served) == [few, long, long]
        assert len(served.peers) == 2

    play(script, scene)
