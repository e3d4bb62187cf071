"""Back pressure: a client that reads slowly slows its upstream down, and the gateway buffers little."""

import asyncio

from gateway_harness import asking, running
from support.raw_server import Peer, wire
from support.wires import CHAT

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
WORD = b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % (b"x" * 60_000)
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
WORDS = 600


def test_unread_bytes_stay_at_the_upstream() -> None:
    said = 0

    async def script(peer: Peer) -> None:
        nonlocal said
        await peer.answer(HEAD)
        for _ in range(WORDS):
            await peer.say(WORD)
            said += 1
        await peer.say(END)
        await peer.hang_up()

    async def scene() -> None:
        async with wire(script) as served:
            toml = f'[server]\nretries = 0\n[upstreams.up]\nprotocol = "{CHAT}"\nbase_url = "{served.url}"\n'
            async with running(toml) as gateway:
                path, body = asking(CHAT, "up/m")
                port = int(gateway.url.rpartition(":")[2])
                reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**16)
                head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
                writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
                before = -1
                while said != before or said == 0:  # until no more bytes are sent
                    before = said
                    await asyncio.sleep(0.3)
                assert said < WORDS, "the upstream is not read while the client does not read"
                got = await reader.read(-1)
                assert got.count(b"x") >= WORDS * 60_000
                assert b"[DONE]" in got
                writer.close()

    asyncio.run(scene())
