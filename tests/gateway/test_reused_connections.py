"""Upstreams may close idle connections at any time: no request is lost, and no failure is counted."""

import asyncio
import json
import random

from gateway_harness import Gateway, ask, running
from support.raw_server import Peer, wire
from support.wires import CHAT

ANSWER = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
}
BODY = json.dumps(ANSWER).encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(BODY)


def test_a_closed_idle_connection_loses_no_request_and_counts_no_failure() -> None:
    dice = random.Random(11)

    async def script(peer: Peer) -> None:
        while True:
            await peer.answer(HEAD + BODY)
            if dice.random() < 0.4:
                await asyncio.sleep(dice.random() * 0.005)
                if dice.random() < 0.5:
                    await peer.request()  # closed just when the next request arrives
                peer.writer.transport.abort() if dice.random() < 0.5 else peer.writer.close()
                return

    async def several(gateway: Gateway) -> list[int]:
        return [(await ask(gateway, CHAT, "up/m", stream=False)).status for _ in range(100)]

    async def scene() -> None:
        async with wire(script) as served:
            toml = f'[server]\nretries = 0\n[upstreams.up]\nprotocol = "{CHAT}"\nbase_url = "{served.url}"\n'
            async with running(toml) as gateway:
                found = await asyncio.gather(*[several(gateway) for _ in range(5)])
                assert [status for statuses in found for status in statuses] == [200] * 500
                assert not gateway.state.upstreams.health.failing
                assert gateway.total("requests", outcome="ok") == 500
            assert len(served.peers) > 50, "connections were closed"

    asyncio.run(scene())
