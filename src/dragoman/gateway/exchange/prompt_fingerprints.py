"""Keep a fingerprint of each prompt, to explain later what the upstream cached of it."""

from __future__ import annotations

import asyncio

from ...observe.caching import prompt_fingerprint
from ...observe.tap import Track
from ...protocols.base import BaseProtocol


def fingerprint_prompt(track: Track, body: bytes, wire: BaseProtocol, model: str) -> None:
    """Fingerprint a request in the loop's next round. By then it is sent, so it need not wait for this."""

    def store_fingerprint() -> None:
        track.fingerprinted(prompt_fingerprint(body, model, wire.fields, wire.prompt))

    asyncio.get_running_loop().call_soon(store_fingerprint)
