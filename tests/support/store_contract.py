"""What every engine of the store must do. A test module imports all of this and gives its own `opened`."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from dragoman.store import (
    Addition,
    EntryKey,
    Receipt,
    ReceiptQuery,
    Retention,
    RetentionRule,
    ScoreCount,
    ScoreQuery,
    ScoreRow,
    SessionQuery,
    SessionRow,
    Store,
    StoredEntry,
    StoredKey,
    UsageQuery,
    UsageRow,
)

Opened = Callable[..., Store]
"""Opens the store of one test: each call is one more gateway that shares it. Takes `retention` and `now`."""

_WORDS = ["größe", "snake_case", "50%", "back\\slash", "x"]
NOON = 1_700_000_000.0 // 86_400 * 86_400 + 43_200
DAY = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


def run(coroutine: Any) -> Any:
    return asyncio.run(coroutine)


def entry(name: object, value: bytes = b"value", namespace: str = "turns") -> StoredEntry:
    return StoredEntry(EntryKey(namespace, str(name)), value)


async def added(store: Store, *receipts: Receipt) -> None:
    await asyncio.wrap_future(store.add_receipts(lambda: receipts))


def receipts(count: int, seed: int = 1) -> list[Receipt]:
    """Receipts of four keys over some days."""
    draw = random.Random(seed)
    made: list[Receipt] = []
    for n in range(count):
        key = draw.choice(["ada", "bob", "cleo", ""])
        made.append(
            Receipt(
                id=f"{seed}-{n:06}",
                at=NOON - draw.randrange(6 * 86_400) - draw.randrange(4) / 4,
                client=draw.choice(["anthropic", "openai-chat"]),
                profile=draw.choice(["claude-code", "codex", ""]),
                model=draw.choice(["claude-sonnet", "gpt-5", "gemini-pro", "a[b]c", "100%_x"]),
                outcome=draw.choice(["ok", "ok", "ok", "cut"]),
                status=draw.choice([200, 200, 502]),
                seconds=draw.randrange(400) / 8,
                failed=draw.randrange(2),
                mended=draw.randrange(3),
                rules=draw.choice(["  ", " types ", " names types "]),
                words=f"{n} {draw.choice(_WORDS)} end",
                key=key,
                team={"ada": "red", "bob": "red", "cleo": "blue"}.get(key, ""),
                upstream=draw.choice(["anthropic", "openrouter"]),
                session=draw.choice(["", "s1", "s2", "s3"]),
                input=draw.randrange(100_000),
                output=draw.randrange(4000),
                cached=draw.randrange(1000),
                reasoning=draw.randrange(100),
                calls=draw.randrange(5),
                invalid=draw.randrange(2),
                micros=draw.choice([None, 0, 17, 1_234_567]),
                summary=b'{"n":%d}' % n,
                value=b"\x00\xffv%d" % n,
            )
        )
    return made


def test_entries_are_there_for_every_gateway_until_they_expire(opened: Opened) -> None:
    async def scenario() -> None:
        clock = Clock()
        retention = Retention(
            entries=RetentionRule(seconds=100_000), namespaces={"aliases": RetentionRule(seconds=50)}
        )
        one, other = (opened(retention=retention, now=clock) for _ in range(2))
        await one.put([entry("a", b"1"), entry("a", b"\x00\xff", "aliases"), entry("b", b"")])
        wanted = [
            EntryKey("turns", "a"),
            EntryKey("aliases", "a"),
            EntryKey("turns", "b"),
            EntryKey("turns", "c"),
        ]
        assert await other.get(wanted) == {wanted[0]: b"1", wanted[1]: b"\x00\xff", wanted[2]: b""}
        assert other.may_hold("turns")
        assert await other.get([]) == {}
        await other.put([entry("a", b"3")])
        clock.now += 51
        assert await one.get(wanted) == {wanted[0]: b"3", wanted[2]: b""}
        clock.now += 60_000
        await other.put([entry("a", b"3")])
        clock.now += 60_000
        assert await one.get(wanted) == {wanted[0]: b"3"}, "an entry that is put again lives as long again"
        for store in (one, other):
            await store.close()

    run(scenario())


def test_thousands_of_keys_at_once(opened: Opened) -> None:
    async def scenario() -> None:
        store = opened()
        await store.put([entry(n, str(n).encode()) for n in range(3000)])
        found = await store.get([EntryKey("turns", str(n)) for n in range(4000)])
        assert found == {EntryKey("turns", str(n)): str(n).encode() for n in range(3000)}
        await store.close()

    run(scenario())


_QUERIES = (
    ReceiptQuery(),
    ReceiptQuery(limit=7),
    ReceiptQuery(since=NOON - DAY, before=NOON - 3600),
    ReceiptQuery(key="ada"),
    ReceiptQuery(key=""),
    ReceiptQuery(team="red", failed=True),
    ReceiptQuery(upstream="openrouter", mended=True),
    ReceiptQuery(session="s2", limit=5),
    ReceiptQuery(client="anthropic", profile="codex"),
    ReceiptQuery(outcome="cut", status=502),
    ReceiptQuery(model="claude-*"),
    ReceiptQuery(model="g?t-5"),
    ReceiptQuery(model="g[pe][tm]*"),
    ReceiptQuery(model="g[!p]*"),
    ReceiptQuery(model="a[[]b]c"),
    ReceiptQuery(model="a[b]c"),
    ReceiptQuery(model="a[b"),
    ReceiptQuery(model="100%_x"),
    ReceiptQuery(model="*.*"),
    ReceiptQuery(rule="types"),
    ReceiptQuery(rule="type"),
    ReceiptQuery(slow=30.5),
    ReceiptQuery(words=("größe", "end")),
    ReceiptQuery(words=("snake_case",)),
    ReceiptQuery(words=("snakexcase",)),
    ReceiptQuery(words=("50%",)),
    ReceiptQuery(words=("back\\slash",)),
    ReceiptQuery(words=("11", "x")),
    ReceiptQuery(words=("nul\x00",)),
)


@pytest.mark.parametrize("query", _QUERIES, ids=lambda query: msgspec.json.encode(query).decode()[-60:])
def test_a_search_finds_what_matches_and_nothing_else(opened: Opened, query: ReceiptQuery) -> None:
    """The judge is `matches`, which the gateway uses for exchanges that are not in the store yet."""
    from dragoman.observe.receipts.query import matches

    made = receipts(300)
    shown = {
        receipt.id: _Shown(
            **{name: getattr(receipt, name) for name in _Shown.__struct_fields__ if name != "rules"},
            rules=tuple(receipt.rules.split()),
        )
        for receipt in made
    }

    async def scenario() -> None:
        store = opened()
        await added(store, *made)
        expected = [receipt for receipt in made if matches(shown[receipt.id], query)]  # type: ignore[arg-type]
        expected.sort(key=lambda receipt: (receipt.at, receipt.id), reverse=True)
        bare = [msgspec.structs.replace(receipt, value=b"") for receipt in expected]
        assert await store.receipts(query) == bare[: query.limit]
        await store.close()

    run(scenario())


class _Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What `matches` reads of a summary."""

    id: str
    at: float
    client: str
    profile: str
    model: str
    outcome: str
    status: int
    seconds: float
    failed: int
    mended: int
    words: str
    key: str
    team: str
    upstream: str
    session: str
    rules: tuple[str, ...]


def test_pages_follow_each_other_without_gap(opened: Opened) -> None:
    async def scenario() -> None:
        store = opened()
        same = [Receipt(f"t{n}", NOON) for n in range(5)]
        made = [*receipts(100), *same]
        await added(store, *made)
        seen: list[str] = []
        query = ReceiptQuery(limit=7)
        while page := await store.receipts(query):
            seen += [receipt.id for receipt in page]
            query = ReceiptQuery(limit=7, after=(page[-1].at, page[-1].id))
        expected = sorted(((receipt.at, receipt.id) for receipt in made), reverse=True)
        assert seen == [id for _, id in expected]
        exported = [receipt async for receipt in store.export()]
        assert exported == sorted(made, key=lambda receipt: (receipt.at, receipt.id))
        part = [receipt.id async for receipt in store.export(NOON - DAY, NOON)]
        assert part == [id for at, id in reversed(expected) if NOON - DAY <= at < NOON]
        await store.close()

    run(scenario())


def test_a_receipt_is_written_and_counted_once(opened: Opened) -> None:
    async def scenario() -> None:
        one, other = opened(), opened()
        first = receipts(1)[0]
        again = msgspec.structs.replace(first, value=b"again", input=first.input + 1)
        await added(one, first)
        await added(other, again, first)
        assert await other.receipt(first.id) == first
        assert await other.receipt("unknown") is None
        (row,) = await one.usage(UsageQuery())
        assert (row.requests, row.input) == (1, first.input)
        for store in (one, other):
            await store.close()

    run(scenario())


@pytest.mark.parametrize("by", ["all", "key", "team", "model", "upstream", "session", "day", "hour"])
@pytest.mark.parametrize("which", [{}, {"key": "ada"}, {"team": "red", "model": "gpt-5"}, {"session": "s1"}])
def test_usage_is_the_exact_sum_of_the_receipts(opened: Opened, by: Any, which: dict[str, str]) -> None:
    made = receipts(400)
    since, until = NOON - 3 * DAY, NOON - DAY

    def label(receipt: Receipt) -> str:
        from datetime import UTC, datetime

        if by in ("day", "hour"):
            form = "%Y-%m-%d" if by == "day" else "%Y-%m-%dT%H"
            return datetime.fromtimestamp(receipt.at, UTC).strftime(form)
        return "" if by == "all" else getattr(receipt, by)

    async def scenario() -> None:
        one, other = opened(), opened()
        await asyncio.gather(added(one, *made[:150]), added(other, *made[100:]), added(one, *made[50:300]))
        expected: dict[str, UsageRow] = {}
        for receipt in made:
            if not since <= receipt.at < until:
                continue
            if any(getattr(receipt, name) != value for name, value in which.items()):
                continue
            if by == "session" and not receipt.session:
                continue
            row = expected.get(label(receipt), UsageRow(label(receipt)))
            expected[label(receipt)] = UsageRow(
                row.group,
                row.requests + 1,
                row.failed + receipt.failed,
                row.input + receipt.input,
                row.output + receipt.output,
                row.cached + receipt.cached,
                row.reasoning + receipt.reasoning,
                row.micros + (receipt.micros or 0),
                row.unpriced + (receipt.micros is None),
                row.calls + receipt.calls,
                row.mended + receipt.mended,
                row.invalid + receipt.invalid,
            )
        found = await other.usage(UsageQuery(by=by, since=since, until=until, **which))
        assert found == [expected[group] for group in sorted(expected)]
        for store in (one, other):
            await store.close()

    run(scenario())


def scored(count: int) -> list[Receipt]:
    """Receipts that count things about three targets over five days."""
    draw = random.Random(7)
    return [
        Receipt(
            f"r{number}",
            NOON - draw.randrange(5) * DAY,
            scores=tuple(
                ScoreCount(
                    draw.choice(["up", "other"]),
                    draw.choice(["größe", "50%\0"]),
                    draw.choice(["call", "rule"]),
                    draw.choice(["valid", "x"]),
                    draw.randrange(1, 4),
                )
                for _ in range(draw.randrange(4))
            ),
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("which", [{}, {"upstream": "up"}, {"upstream": "other", "model": "größe"}])
@pytest.mark.parametrize("by_day", [False, True])
def test_scores_are_the_exact_sum_of_the_receipts(
    opened: Opened, which: dict[str, str], by_day: bool
) -> None:
    made = scored(300)
    since, until = NOON - 3 * DAY, NOON - DAY / 2  # the first moment of the last day: that day is left out

    async def scenario() -> None:
        one, other = opened(), opened()
        await asyncio.gather(added(one, *made[:150]), added(other, *made[100:]), added(one, *made[50:200]))
        await added(other, made[0], made[0])
        expected: dict[tuple[int, str, str, str, str], int] = {}
        for receipt in made:
            day = int(receipt.at // DAY)
            if not since // DAY <= day < until / DAY:
                continue
            for count in receipt.scores:
                if any(getattr(count, name) != value for name, value in which.items()):
                    continue
                key = (day if by_day else 0, count.upstream, count.model, count.kind, count.name)
                expected[key] = expected.get(key, 0) + count.number
        query = ScoreQuery(since=since, until=until, by_day=by_day, **which)
        found = await other.scores(query)
        shown = {
            (row.day, row.upstream, row.model.replace("\ufffd", "\0"), row.kind, row.name): row.count
            for row in found
        }
        assert expected
        assert shown == expected
        assert found == sorted(found, key=lambda row: msgspec.structs.astuple(row))
        assert isinstance(found[0], ScoreRow)
        for store in (one, other):
            await store.close()

    run(scenario())


def turns() -> list[Receipt]:
    """Three conversations, whose turns are mixed."""
    return [
        Receipt(
            f"t{n}", NOON + n, model=f"m{n % 2}", key=("ada", "bob", "ada")[n % 3], session=f"s{n % 3}",
            profile="codex" if n > 5 else "", opening=f"turn {n}" if n > 2 else "", input=n, micros=n,
            value=b"detail",
        )
        for n in range(12)
    ]  # fmt: skip


def test_sessions_are_the_sums_of_their_turns(opened: Opened) -> None:
    async def scenario() -> None:
        one, other = opened(), opened()
        made = turns()
        await added(one, *made[2:7])
        await asyncio.gather(added(one, *made[:4]), added(other, *made[6:]))  # some are told twice
        found = await other.sessions(SessionQuery())
        assert [row.session for row in found] == ["s2", "s1", "s0"]
        first = found[-1]
        assert msgspec.structs.replace(first, models=()) == SessionRow(
            "s0", "ada", "", "codex", "turn 3", NOON, NOON + 9
        )
        assert [(row.group, row.requests, row.input, row.micros) for row in first.models] == [
            ("m0", 2, 0 + 6, 6),
            ("m1", 2, 3 + 9, 12),
        ]
        assert [row.session for row in await one.sessions(SessionQuery(key="ada"))] == ["s2", "s0"]
        assert await one.sessions(SessionQuery(session="s1")) == found[1:2]
        assert await one.sessions(SessionQuery(session="s1", key="ada")) == []
        assert await one.sessions(SessionQuery(limit=1, after=(found[0].last, "s2"))) == found[1:2]
        assert await one.sessions(SessionQuery(since=NOON + 11)) == found[:1]
        with_values = await one.receipts(ReceiptQuery(session="s1", details=True))
        assert [(row.id, row.value) for row in with_values] == [(f"t{n}", b"detail") for n in (10, 7, 4, 1)]
        for store in (one, other):
            await store.close()

    run(scenario())


def test_sessions_go_with_their_receipts(opened: Opened) -> None:
    async def scenario() -> None:
        clock = Clock()
        store = opened(retention=Retention(receipts=RetentionRule(seconds=3 * DAY)), now=clock)
        await added(store, Receipt("old", NOON - 5 * DAY, session="s1"), Receipt("new", NOON, session="s2"))
        await store.prune()
        assert [row.session for row in await store.sessions(SessionQuery())] == ["s2"]
        await store.close()

    run(scenario())


def test_keys_are_stored_as_they_are(opened: Opened) -> None:
    async def scenario() -> None:
        one, other = opened(), opened()
        ada = StoredKey(
            name="ada", hash=b"\x00\xff" * 16, prefix="dk-ab", team="red", role="admin",
            models=("claude-*", "a b"), limits=b'{"rpm":60}', created=NOON, expires=NOON + 5,
        )  # fmt: skip
        assert await one.put_key(ada, replace=False)
        assert not await other.put_key(StoredKey(name="ada", hash=b"other"), replace=False)
        assert await other.put_key(StoredKey(name="Zoe", hash=b"z"), replace=False)
        assert await other.keys() == [StoredKey(name="Zoe", hash=b"z"), ada]
        await other.touch_keys({"ada": NOON + 3, "gone": NOON})
        await one.touch_keys({"ada": NOON + 2})
        revoked = msgspec.structs.replace(ada, revoked=NOON + 9, last_used=NOON + 3)
        assert (await one.keys())[1] == msgspec.structs.replace(ada, last_used=NOON + 3)
        assert await one.put_key(revoked)
        assert (await other.keys())[1] == revoked
        for store in (one, other):
            await store.close()

    run(scenario())


def test_counters_add_up_across_gateways(opened: Opened) -> None:
    async def scenario() -> None:
        clock = Clock()
        stores = [opened(now=clock) for _ in range(3)]
        until = NOON + 60
        names = ["team", "a", "key"]
        results = await asyncio.gather(
            *(
                store.add([Addition(name, n, until) for name in random.Random(n).sample(names, 3)])
                for n in range(40)
                for store in stores
            )
        )
        assert all(len(values) == 3 for values in results)
        total = 3 * sum(range(40))
        store = stores[0]
        assert await store.add([Addition(name, 0, until) for name in names]) == [total] * 3
        assert await store.add([Addition("a", -total, until), Addition("new", 5, until)]) == [0, 5]
        clock.now = until
        assert await store.add([Addition("key", 2, until + 60)]) == [2], "its time is over"
        assert await store.add([Addition("key", 2, until + 99)]) == [4]
        clock.now = until + 61
        assert await store.add([Addition("key", 1, until + 200)]) == [1], "the first addition sets the time"
        assert await store.add([Addition("key", 2**50, until + 200)]) == [2**50 + 1]
        assert await store.add([]) == []
        for store in stores:
            await store.close()

    run(scenario())


def test_each_addition_has_a_value_of_its_own(opened: Opened) -> None:
    """So a limit of N admits exactly N, however many ask at once."""

    async def scenario() -> None:
        stores = [opened() for _ in range(2)]
        jobs = (store.add([Addition("slots", 1, 4e9)]) for _ in range(30) for store in stores)
        values = [value for (value,) in await asyncio.gather(*jobs)]
        assert sorted(values) == list(range(1, 61))
        for store in stores:
            await store.close()

    run(scenario())


def test_old_receipts_go_and_their_sums_stay(opened: Opened) -> None:
    async def scenario() -> None:
        clock = Clock()
        retention = Retention(receipts=RetentionRule(seconds=3 * DAY), usage=30 * DAY)
        store = opened(retention=retention, now=clock)
        counts = (ScoreCount("up", "m", "call", "valid", 1),)
        old = Receipt("old", NOON - 4 * DAY, input=3, scores=counts)
        new = Receipt("new", NOON - DAY, input=4, scores=counts)
        await added(store, old, new)
        await store.prune()
        assert [receipt.id for receipt in await store.receipts(ReceiptQuery())] == ["new"]
        (row,) = await store.usage(UsageQuery())
        assert (row.requests, row.input) == (2, 7)
        assert [row.count for row in await store.scores(ScoreQuery())] == [2]
        clock.now += 60 * DAY
        await store.prune()
        assert await store.receipts(ReceiptQuery()) == []
        assert await store.usage(UsageQuery()) == []
        assert await store.scores(ScoreQuery()) == []
        await store.close()

    run(scenario())


def test_the_rows_are_limited_and_the_oldest_are_dropped(opened: Opened) -> None:
    async def scenario() -> None:
        clock = Clock()
        long = 400 * DAY
        retention = Retention(entries=RetentionRule(long, rows=10), receipts=RetentionRule(long, rows=20))
        store = opened(retention=retention, now=clock)
        for n in range(30):
            clock.now += DAY  # an engine may drop whole days only
            await store.put([entry(n)])
            await added(store, Receipt(str(n), clock.now))
        await store.prune()
        kept = await store.get([EntryKey("turns", str(n)) for n in range(30)])
        assert [key.key for key in kept] == [str(n) for n in range(20, 30)]
        left = [receipt.id for receipt in await store.receipts(ReceiptQuery())]
        assert left[:20] == [str(n) for n in range(29, 9, -1)]
        assert len(left) == 20
        await store.close()

    run(scenario())


def test_the_status_shows_what_is_stored(opened: Opened) -> None:
    async def scenario() -> None:
        store = opened()
        await store.put([entry(n) for n in range(5)])
        await added(store, *receipts(3))
        status = await store.status()
        assert (status.pending, status.version > 0) == (0, True)
        assert status.oldest == min(receipt.at for receipt in receipts(3))
        assert status.bytes > 0
        assert store.problem == ""
        if not status.estimated:
            assert (status.receipts, status.entries) == (3, 5)
        await store.close()

    run(scenario())
