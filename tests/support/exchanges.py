"""Runs an `Exchange` over samples and corpus cases, in any chunking."""

from collections.abc import Iterable

from dragoman.conform.shape import Json
from dragoman.model.messages import Tool
from dragoman.translation.translation import Options, Translation

SEED = "x1"


def declared(tools: Iterable[Json]) -> tuple[Tool, ...]:
    return tuple(
        Tool(
            name=tool["name"],
            description=tool.get("description"),
            parameters=tool.get("parameters"),
            kind=tool.get("kind", "function"),
        )
        for tool in tools
    )


def exchange(upstream: str, client: str, tools: Iterable[Json] = (), **options: object) -> Translation:
    settings = {"id": SEED, "created": 1_700_000_000, "model": "asked-for", **options}
    return Translation(upstream, client, tools=declared(tools), options=Options(**settings))


def run(it: Translation, chunks: Iterable[bytes]) -> bytes:
    return b"".join([*(it.feed(chunk) for chunk in chunks), it.close()])


def sliced(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]
