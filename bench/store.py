"""`make bench ARGS=--store`: what receipts cost on SQLite and on a real PostgreSQL, at a million of them."""

from __future__ import annotations

import asyncio
import random
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from dragoman.credentials.secret import Secret
from dragoman.store import (
    Addition,
    Receipt,
    ReceiptQuery,
    Retention,
    RetentionRule,
    Store,
    UsageQuery,
    open_store,
)

from .processes import ROOT

_BATCH = 250
"""Receipts that a gateway with a thousand requests a second writes at once: it gathers them for 0.25 s."""
_DAYS = 30
_ROUNDS = 9
_FOREVER = Retention(
    entries=RetentionRule(seconds=1e9, rows=1 << 62),
    receipts=RetentionRule(seconds=1e9, rows=1 << 62),
    bytes=1 << 62,
)
_WORDS = [f"{random.Random(n).getrandbits(40):x}" for n in range(4000)]


def receipts(count: int, seed: int = 1) -> Iterator[Receipt]:
    """Receipts of 30 days, in the order of time, with JSON of the usual size."""
    draw = random.Random(seed)
    now = time.time()
    for n in range(count):
        at = now - (count - n) * _DAYS * 86_400 / count
        id = f"{seed:04x}{n:012x}"
        key, model = f"person-{draw.randrange(50)}", f"claude-{draw.randrange(8)}"
        text = " ".join(draw.choices(_WORDS, k=40))
        summary = {"id": id, "at": at, "client": "anthropic", "model": model, "text": text}
        detail = {"attempts": [{"target": f"up/{model}", "text": text}], "calls": draw.choices(_WORDS, k=120)}
        yield Receipt(
            id=id, at=at, client="anthropic", profile="claude-code", model=model, outcome="ok", status=200,
            seconds=draw.random() * 20, failed=int(draw.random() < 0.02), mended=int(draw.random() < 0.05),
            rules="  ", words=f"{id} anthropic claude-code {model} up/{model} ok",
            key=key, team=f"team-{hash(key) % 6}", upstream="up", session=f"{n // 40:016x}",
            input=20_000, output=500, cached=15_000, reasoning=100, calls=2, micros=draw.randrange(100_000),
            summary=msgspec.json.encode(summary), value=msgspec.json.encode(detail),
        )  # fmt: skip


async def _measure(store: Store, count: int, say: Callable[[str], None]) -> dict[str, float]:
    figures: dict[str, float] = {}
    made = receipts(count)
    spent = worked = 0.0
    for start in range(0, count, 4 * _BATCH):
        batches = [[*_take(made, _BATCH)] for _ in range(4)]
        cpu, began = _cpu(), time.perf_counter()
        # A few batches at a time, as several workers write them.
        await asyncio.gather(*(asyncio.wrap_future(store.add_receipts(lambda b=b: b)) for b in batches))
        spent += time.perf_counter() - began
        worked += _cpu() - cpu
        if start % 100_000 == 0:
            say(f"  {start:,} receipts")
    figures["receipts written per second"] = count / spent
    figures["µs of the gateway's CPU per receipt"] = worked / count * 1e6
    middle = f"{1:04x}{count // 2:012x}"
    lists: dict[str, Callable[[], Awaitable[Any]]] = {
        "newest 100, ms": lambda: store.receipts(ReceiptQuery()),
        "100 of one key, ms": lambda: store.receipts(ReceiptQuery(key="person-7")),
        "one session, ms": lambda: store.receipts(ReceiptQuery(session=f"{count // 80:016x}")),
        "100 failed, ms": lambda: store.receipts(ReceiptQuery(failed=True)),
        "100 of an old page, ms": lambda: store.receipts(
            ReceiptQuery(after=(time.time() - 20 * 86_400, "z"))
        ),
        "100 of a model by glob, ms": lambda: store.receipts(ReceiptQuery(model="*-3")),
        "a word that is nowhere, ms": lambda: store.receipts(ReceiptQuery(words=("nowhere",))),
        "one by its id, ms": lambda: store.receipt(middle),
        "usage by day, ms": lambda: store.usage(UsageQuery(by="day")),
        "usage by key, ms": lambda: store.usage(UsageQuery(by="key")),
        "usage by session, a day, ms": lambda: store.usage(
            UsageQuery(by="session", since=time.time() - 86_400)
        ),
        "two counters, ms": lambda: store.add([Addition("a", 1, 4e9), Addition("b", 1, 4e9)]),
    }
    for name, ask in lists.items():
        figures[name] = median([await _timed(ask) for _ in range(_ROUNDS)]) * 1000
    status = await store.status()
    figures["MB for a million receipts"] = status.bytes / count
    return figures


def _take(made: Iterator[Receipt], count: int) -> Iterator[Receipt]:
    return (receipt for receipt, _ in zip(made, range(count), strict=False))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def _timed(ask: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await ask()
    return time.perf_counter() - began


def run(count: int, say: Callable[[str], None]) -> dict[str, dict[str, float]]:
    """The figures of both engines."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import services

    figures: dict[str, dict[str, float]] = {}

    async def one(name: str, place: Path | Secret) -> None:
        say(f"{name}, {count:,} receipts")
        store = open_store(place, retention=_FOREVER, fallback=False)
        try:
            figures[name] = await _measure(store, count, say)
        finally:
            await store.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(one("SQLite", Path(folder) / "store.db"))
    server = services.Postgres(fsync="on", shared_buffers="256MB", max_wal_size="4GB")
    try:
        server.start()
        asyncio.run(one("PostgreSQL", Secret(server.url())))
    finally:
        server.close()
    return figures


def text(figures: dict[str, dict[str, float]]) -> str:
    """A table, one row per figure."""
    names = list(figures)
    rows = [["", *names]]
    rows += [
        [row, *(f"{figures[name][row]:,.{0 if figures[name][row] >= 100 else 1}f}" for name in names)]
        for row in figures[names[0]]
    ]
    width = max(len(row[0]) for row in rows)
    return "\n".join(f"{first:<{width}}" + "".join(f"{value:>14}" for value in rest) for first, *rest in rows)
