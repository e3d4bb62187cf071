"""What a store of an older version holds, and whether the newest one still finds it."""

from collections.abc import Callable

import msgspec

from dragoman.store import (
    OWNERS,
    Addition,
    EntryKey,
    ReceiptQuery,
    ScoreQuery,
    SessionQuery,
    Store,
    StoredEntry,
    StoredKey,
    UsageQuery,
)

AT = 1_700_000_000.0
_USED = {"input": 100, "output": 20, "cached_input": 30, "reasoning": 5}
TABLES = {
    "entries": {"namespace": OWNERS, "key": "k1", "value": b"alice", "expires": 4e9},
    "receipts": {
        "id": "r1", "at": AT, "client": "c", "profile": "p", "model": "sonnet", "outcome": "ok",
        "status": 200, "seconds": 1.5, "failed": 0, "mended": 0, "rules": " ", "words": "w", "key": "alice",
        "team": "fruit", "upstream": "up", "session": "s1", "input": 100, "output": 20, "cached": 30,
        "reasoning": 5, "calls": 2, "invalid": 1, "micros": 7, "opening": "Hi", "value": b"{}",
        "summary": msgspec.json.encode({"id": "r1", "at": AT, "target": "up/sonnet", "usage": _USED}),
    },
    "usage": {
        "hour": int(AT // 3600), "key": "alice", "team": "fruit", "model": "sonnet", "upstream": "up",
        "requests": 1, "failed": 0, "input": 100, "output": 20, "cached": 30, "reasoning": 5, "micros": 7,
        "unpriced": 0, "calls": 2, "mended": 0, "invalid": 1,
    },
    "access_keys": {
        "name": "alice", "hash": b"h", "prefix": "dgm-abcd", "team": "fruit", "role": "user", "models": "[]",
        "limits": b"{}", "created": AT, "expires": None, "revoked": None, "last_used": None,
    },
    "counters": {"name": "spent", "value": 5, "expires": 4e9},
    "scores": {"day": int(AT // 86_400), "upstream": "up", "model": "sonnet", "kind": "answer", "name": "ok",
               "count": 3},
    "sessions": {"session": "s1", "key": "alice", "team": "fruit", "profile": "p", "opening": "Hi",
                 "first": AT, "last": AT},
}  # fmt: skip
"""A row of each table, with every column that any version has."""


def fill(columns: Callable[[str], list[str]], insert: Callable[[str, dict[str, object]], None]) -> set[str]:
    """Write a row into each table that this version has. Returns the names of the tables."""
    filled: set[str] = set()
    for table, row in TABLES.items():
        known = columns(table)
        if known:
            assert {*known} <= row.keys(), (table, known)
            insert(table, {name: row[name] for name in known})
            filled.add(table)
    return filled


async def check(store: Store, filled: set[str]) -> None:
    """Everything is there, and can be written on."""
    entry = EntryKey(OWNERS, "k1")
    assert await store.get([entry]) == {entry: b"alice"}
    await store.put([StoredEntry(entry, b"bob")])
    assert await store.get([entry]) == {entry: b"bob"}
    await store.put([StoredEntry(entry, b"alice")])
    assert (await store.status()).pending == 0
    if "receipts" in filled:
        [receipt] = await store.receipts(ReceiptQuery(since=0))
        assert (receipt.id, receipt.model, receipt.input) == ("r1", "sonnet", 100)
        [row] = await store.usage(UsageQuery(by="upstream", since=0))
        assert (row.group, row.requests, row.input, row.output) == ("up", 1, 100, 20)
    if "access_keys" in filled:
        assert "alice" in [key.name for key in await store.keys()]
        [one] = await store.sessions(SessionQuery(since=0))
        assert (one.session, one.key) == ("s1", "alice")
        assert await store.add([Addition("spent", 1, 4e9)]) == [6]
        assert await store.add([Addition("spent", -1, 4e9)]) == [5]
    if "scores" in filled:
        [score] = await store.scores(ScoreQuery(since=0))
        assert (score.model, score.count) == ("sonnet", 3)
    assert await store.put_key(StoredKey(name="new", hash=b"n", prefix="dgm-", created=AT))
