"""The contract that every place keeps, and the rules of the cache before them."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from credential_places import PLACES, Everything, Place, in_full

from dragoman.credentials import (
    CredentialError,
    CredentialSpec,
    NoCredential,
    Refused,
    Token,
    caller_key,
    for_caller,
    open_credential,
    with_fresh,
)
from dragoman.credentials.base import Problem, Reading, Stamp
from dragoman.credentials.cache import CachedCredential
from dragoman.secret import Secret

FIRST, SECOND, THIRD = "sk-first-5f3a", "sk-second-9c1b", "sk-third-77d0"


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return PLACES[request.param](tmp_path)


@pytest.fixture
def log() -> Iterator[Everything]:
    logger, handler = logging.getLogger("dragoman.credentials"), Everything()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


def revealed(token: Token) -> str:
    assert token.secret is not None
    return token.secret.reveal()


def test_it_is_read_once_while_nothing_changes(place: Place) -> None:
    async def scenario() -> None:
        place.rotate(FIRST)
        source = place.open()
        first = await source.token()
        assert (revealed(first), first.changed) == (FIRST, True)
        reads = place.reads
        for _ in range(50):
            again = await source.token()
            assert (revealed(again), again.changed) == (FIRST, False)
        assert place.reads == reads

    asyncio.run(scenario())


def test_a_rotation_is_noticed(place: Place, log: Everything) -> None:
    async def scenario() -> None:
        place.rotate(FIRST)
        source = place.open()
        first = await source.token()
        place.rotate(SECOND)
        second = await source.token(force=not place.announces)
        assert (revealed(second), second.changed) == (SECOND, True)
        assert log.having(f"upper: rotated {first.secret} → {second.secret}")
        assert log.having(f"upper: fresh {second.secret}")
        await source.token()
        assert log.having(f"upper: unchanged {second.secret}")

    asyncio.run(scenario())


def test_force_reads_again(place: Place) -> None:
    async def scenario() -> None:
        place.rotate(FIRST)
        source = place.open()
        await source.token()
        reads = place.reads
        token = await source.token(force=True)
        assert (revealed(token), token.changed) == (FIRST, False)
        assert place.reads == reads + 1

    asyncio.run(scenario())


def test_a_failed_read_goes_on_with_the_last_good_token_and_says_so(place: Place, log: Everything) -> None:
    async def scenario() -> None:
        place.rotate(FIRST)
        source = place.open()
        fine = await source.token()
        place.spoil()
        assert revealed(await source.token(force=True)) == FIRST
        (warning,) = log.having("going on with")
        assert "credential of upper: the " in warning
        assert f"going on with {fine.secret}" in warning
        place.rotate(SECOND)
        place.clock.now += 60
        assert revealed(await source.token(force=not place.announces)) == SECOND

    asyncio.run(scenario())


def test_without_any_token_the_error_names_upstream_and_place(place: Place) -> None:
    async def scenario() -> None:
        place.rotate(FIRST)
        place.spoil()
        source = place.open()
        with pytest.raises(
            CredentialError, match=r"^the credential of upstream upper cannot be had: the "
        ) as caught:
            await source.token()
        assert place.spec.place.split(":")[1].split("/")[-1] in caught.value.message
        assert caught.value.status == 503
        place.rotate(SECOND)
        place.clock.now += 60
        assert revealed(await source.token()) == SECOND

    asyncio.run(scenario())


@pytest.mark.parametrize("force", [False, True])
def test_all_who_ask_at_once_share_one_read(place: Place, force: bool) -> None:
    async def scenario() -> None:
        place.rotate(FIRST)
        source = place.open()
        tokens = await asyncio.gather(*(source.token(force=force) for _ in range(200)))
        assert {revealed(token) for token in tokens} == {FIRST}
        assert place.reads == 1

    asyncio.run(scenario())


def test_who_leaves_does_not_take_the_read_along(place: Place) -> None:
    async def scenario() -> None:
        place.rotate(FIRST)
        source = place.open()
        leaver = asyncio.create_task(source.token())
        others = [asyncio.create_task(source.token()) for _ in range(5)]
        await asyncio.sleep(0)
        leaver.cancel()
        assert {revealed(token) for token in await asyncio.gather(*others)} == {FIRST}
        assert place.reads == 1

    asyncio.run(scenario())


def test_a_secret_is_in_no_log_repr_or_traceback(place: Place, log: Everything) -> None:
    async def scenario() -> list[str]:
        place.rotate(FIRST)
        source = place.open()
        shown = [repr(source), repr(place.spec), repr(await source.token()), repr(source)]
        place.rotate(SECOND)
        shown.append(repr(await source.token(force=True)))
        place.spoil()
        await source.token(force=True)
        try:
            await place.open().token()
        except CredentialError as error:
            shown.append(in_full(error))
        return shown

    shown = asyncio.run(scenario())
    assert len(shown) == 6
    for secret in (FIRST, SECOND):
        assert not [text for text in (*shown, *log.lines) if secret in text]
    assert log.lines


@pytest.mark.parametrize("bad", [f"{THIRD}\nx", f"{THIRD}é", f"\x00{THIRD}\x01"])
def test_what_no_header_can_carry_is_refused_unseen(place: Place, bad: str, log: Everything) -> None:
    async def scenario() -> None:
        place.rotate(bad)
        with pytest.raises(
            CredentialError, match=r"no HTTP header can carry|not hold text|zero byte"
        ) as caught:
            await place.open().token()
        assert THIRD not in in_full(caught.value)
        assert not log.having(THIRD)

    asyncio.run(scenario())


class Mint:
    """A place that makes a new token each time it is read, when the test lets it."""

    pause = 5.0
    renews = True

    def __init__(self, life: float | None = None) -> None:
        self.now = 1000.0
        self.life = life
        self.made = 0
        self.broken = False
        self.go = asyncio.Event()
        self.go.set()

    def stamp(self) -> Stamp:
        return Stamp()

    async def read(self, *, force: bool) -> Reading | Problem:
        self.made += 1
        await self.go.wait()
        if self.broken:
            return Problem("the mint is closed")
        return Reading(Secret(f"t{self.made}"), None if self.life is None else self.now + self.life)

    def source(self) -> CachedCredential:
        return CachedCredential(self, name="upper", clock=lambda: self.now)


def test_a_token_is_renewed_before_it_expires() -> None:
    async def scenario() -> None:
        mint = Mint(life=3600)
        source = mint.source()
        assert revealed(await source.token()) == "t1"
        mint.now += 3539
        assert revealed(await source.token()) == "t1"
        mint.now += 2
        renewed = await source.token()
        assert (revealed(renewed), renewed.expires) == ("t2", mint.now + 3600)

    asyncio.run(scenario())


def test_a_short_life_is_not_spent_on_renewing() -> None:
    async def scenario() -> None:
        mint = Mint(life=10)
        source = mint.source()
        for _ in range(80):
            await source.token()
            mint.now += 0.1
        assert mint.made == 1
        mint.now += 1.1
        assert revealed(await source.token()) == "t2"

    asyncio.run(scenario())


def test_a_slow_renewal_does_not_hold_up_while_the_old_token_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr("dragoman.credentials.cache.PATIENCE", 0.01)
        mint = Mint(life=100)
        source = mint.source()
        await source.token()
        mint.now += 95
        mint.go.clear()
        assert revealed(await source.token()) == "t1"
        waiting = [asyncio.create_task(source.token()) for _ in range(10)]
        await asyncio.sleep(0)
        mint.now += 10  # over: now it has to be waited for
        last = asyncio.create_task(source.token())
        assert {revealed(token) for token in await asyncio.gather(*waiting)} <= {"t1", "t2"}
        mint.go.set()
        assert revealed(await last) == "t2"
        assert mint.made == 2

    asyncio.run(scenario())


def test_a_failing_place_is_left_alone_for_a_while() -> None:
    async def scenario() -> None:
        mint = Mint(life=100)
        source = mint.source()
        await source.token()
        mint.broken = True
        mint.now += 200
        for _ in range(10):
            assert revealed(await source.token(force=True)) == "t1"
        assert mint.made == 2
        mint.broken = False
        mint.now += 5
        assert revealed(await source.token()) == "t3"

    asyncio.run(scenario())


def test_a_reading_that_began_before_a_refusal_does_not_answer_it() -> None:
    async def scenario() -> None:
        mint = Mint(life=100)
        source = mint.source()
        mint.go.clear()
        early = asyncio.create_task(source.token())
        await asyncio.sleep(0)
        mint.go.set()
        await early
        mint.now += 95
        mint.go.clear()
        renewing = asyncio.create_task(source.token())
        await asyncio.sleep(0)
        forced = [asyncio.create_task(source.token(force=True)) for _ in range(20)]
        await asyncio.sleep(0.01)
        mint.go.set()
        await renewing
        # The renewal brought another token than the one that was refused: that is all they need.
        assert {revealed(token) for token in await asyncio.gather(*forced)} == {"t2"}
        assert mint.made == 2

    asyncio.run(scenario())


def test_closing_gives_up_a_read() -> None:
    async def scenario() -> None:
        mint = Mint()
        mint.go.clear()
        source = mint.source()
        asking = asyncio.create_task(source.token())
        await asyncio.sleep(0.01)
        await source.close()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await source.close()

    asyncio.run(scenario())


def test_refused_once_is_tried_again_with_a_newer_token() -> None:
    async def scenario() -> None:
        mint = Mint()
        source = mint.source()

        async def call(token: Token) -> str:
            await asyncio.sleep(0)
            if revealed(token) == "t1":
                raise Refused("HTTP 401")
            return revealed(token)

        assert await asyncio.gather(*(with_fresh(source, call) for _ in range(100))) == ["t2"] * 100
        assert mint.made == 2

    asyncio.run(scenario())


def test_refused_with_nothing_newer_is_not_tried_again_unless_the_fault_may_pass(tmp_path: Path) -> None:
    async def scenario(passing: bool) -> int:
        tried = 0

        async def call(token: Token) -> None:
            nonlocal tried
            tried += 1
            raise Refused("HTTP 403", status=403, passing=passing)

        spec = CredentialSpec(kind="env", name="KEY")
        with pytest.raises(Refused) as caught:
            await with_fresh(open_credential(spec, environment={"KEY": "k"}), call)
        assert caught.value.status == 403
        return tried

    assert asyncio.run(scenario(passing=False)) == 1
    assert asyncio.run(scenario(passing=True)) == 2


def test_no_credential_is_a_credential() -> None:
    source = open_credential(CredentialSpec(kind="none"))
    assert isinstance(source, NoCredential)
    assert asyncio.run(source.token(force=True)) == Token(secret=None)
    assert for_caller(source, Secret("k")) is source


def test_the_callers_key_is_passed_on_and_asked_for() -> None:
    source = open_credential(CredentialSpec(kind="client"), name="upper")
    token = asyncio.run(for_caller(source, Secret("k")).token(force=True))
    assert token == Token(secret=Secret("k"))
    with pytest.raises(CredentialError, match="upstream upper takes the caller's own key") as caught:
        asyncio.run(source.token())
    assert (caught.value.status, caught.value.fault) == (401, "client")


@pytest.mark.parametrize(
    "headers",
    [
        {"x-api-key": "k"},
        {"authorization": "Bearer k"},
        {"authorization": "bearer  k "},
        {"x-goog-api-key": "k"},
    ],
)
def test_the_callers_key_is_found_where_clients_put_it(headers: dict[str, str]) -> None:
    assert caller_key(headers) == Secret("k")


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Basic k"}, {"authorization": "Bearer"}, {"x-api-key": ""}]
)
def test_no_key_is_none(headers: dict[str, str]) -> None:
    assert caller_key(headers) is None
