"""Note what a prompt consists of, to explain later what the upstream cached of it."""

from __future__ import annotations

import asyncio

from ..observe.caching import prompt_print
from ..observe.tap import Track
from ..protocols.facts import FieldNames


def print_prompt(track: Track, body: bytes, fields: FieldNames, model: str) -> None:
    """Print a request in the loop's next round: it is on its way then, and does not wait for this."""

    def later() -> None:
        track.prompt = prompt_print(body, fields, model)

    asyncio.get_running_loop().call_soon(later)
