"""The contract that every credential source keeps."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from credential_places import PLACES, LogCollector, Place, full_report, revealed

from dragoman.credentials import (
    CredentialError,
    CredentialSpec,
    NoCredential,
    Token,
    for_caller,
    open_credential,
)
from dragoman.credentials.secret import Secret

FIRST, SECOND, THIRD = "sk-first-5f3a", "sk-second-9c1b", "sk-third-77d0"


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    place = PLACES[request.param](tmp_path)
    yield place
    place.close()


@pytest.fixture
def log() -> Iterator[LogCollector]:
    logger, handler = logging.getLogger("dragoman.credentials"), LogCollector()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_an_unchanged_credential_is_read_once(place: Place) -> None:
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


def test_a_rotation_is_noticed(place: Place, log: LogCollector) -> None:
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


def test_a_failed_read_keeps_the_last_good_token_and_is_logged(place: Place, log: LogCollector) -> None:
    async def scenario() -> None:
        place.rotate(FIRST)
        source = place.open()
        fine = await source.token()
        place.spoil()
        assert revealed(await source.token(force=True)) == FIRST
        (warning,) = log.having("still using")
        assert "credential of upper: the " in warning
        assert f"still using {fine.secret}" in warning
        place.rotate(SECOND)
        place.clock.now += 60
        assert revealed(await source.token(force=not place.announces)) == SECOND

    asyncio.run(scenario())


def test_the_error_without_a_token_names_the_upstream_and_the_source(place: Place) -> None:
    async def scenario() -> None:
        place.rotate(FIRST)
        place.spoil()
        source = place.open()
        with pytest.raises(
            CredentialError, match=r"^upstream upper has no usable credential: the "
        ) as caught:
            await source.token()
        assert place.spec.description.split(":")[1].split("/")[-1] in caught.value.message
        assert caught.value.status == 503
        place.rotate(SECOND)
        place.clock.now += 60
        assert revealed(await source.token()) == SECOND

    asyncio.run(scenario())


@pytest.mark.parametrize("force", [False, True])
def test_concurrent_requests_share_one_read(place: Place, force: bool) -> None:
    async def scenario() -> None:
        place.rotate(FIRST)
        source = place.open()
        tokens = await asyncio.gather(*(source.token(force=force) for _ in range(200)))
        assert {revealed(token) for token in tokens} == {FIRST}
        assert place.reads == 1

    asyncio.run(scenario())


def test_a_cancelled_request_does_not_cancel_the_read(place: Place) -> None:
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


def test_a_secret_is_in_no_log_repr_or_traceback(place: Place, log: LogCollector) -> None:
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
            shown.append(full_report(error))
        return shown

    shown = asyncio.run(scenario())
    assert len(shown) == 6
    for secret in (FIRST, SECOND):
        assert not [text for text in (*shown, *log.lines) if secret in text]
    assert log.lines


@pytest.mark.parametrize("bad", [f"{THIRD}\nx", f"{THIRD}é", f"\x00{THIRD}\x01"])
def test_a_secret_that_is_no_legal_header_is_refused_without_showing_it(
    place: Place, bad: str, log: LogCollector
) -> None:
    async def scenario() -> None:
        place.rotate(bad)
        with pytest.raises(
            CredentialError, match=r"not allowed in an HTTP header|not hold text|zero byte"
        ) as caught:
            await place.open().token()
        assert THIRD not in full_report(caught.value)
        assert not log.having(THIRD)

    asyncio.run(scenario())


def test_none_is_a_valid_credential() -> None:
    source = open_credential(CredentialSpec(kind="none"))
    assert isinstance(source, NoCredential)
    assert asyncio.run(source.token(force=True)) == Token(secret=None)
    assert for_caller(source, Secret("k")) is source


def test_a_client_credential_is_passed_on_and_required() -> None:
    source = open_credential(CredentialSpec(kind="client"), name="upper")
    token = asyncio.run(for_caller(source, Secret("k")).token(force=True))
    assert token == Token(secret=Secret("k"))
    with pytest.raises(CredentialError, match="upstream upper takes the client's own key") as caught:
        asyncio.run(source.token())
    assert (caught.value.status, caught.value.fault) == (401, "client")
