"""A gateway before a scripted upstream, asked by a client that wants nothing special."""

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "gateway"))

from gateway_harness import Gateway, before, running, soon

__all__ = ["Gateway", "asked", "before", "got", "running", "settled", "soon"]


async def asked(gateway: Gateway, count: int = 1) -> None:
    for _ in range(count):
        body = {"model": "c/demo", "messages": [{"role": "user", "content": "Hi"}]}
        async with gateway.session.post(gateway.url + "/v1/chat/completions", json=body) as response:
            assert response.status == 200, await response.text()
            await response.read()


async def got(gateway: Gateway, path: str, status: int = 200) -> Any:
    async with gateway.session.get(gateway.url + path) as response:
        assert response.status == status
        return await (response.json() if path != "/metrics" else response.text())


async def settled(gateway: Gateway) -> None:
    """No receipt waits to be written."""
    assert await soon(lambda: not gateway.state.observed.ledger.pending, 15), gateway.state.store.problem
