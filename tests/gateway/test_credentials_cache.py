"""The credential cache: renewal, failed and slow reads, and refused tokens."""

import asyncio

import pytest
from credential_places import revealed

from dragoman.config import loads
from dragoman.credentials.base import Reading, ReadProblem, Stamp
from dragoman.credentials.cache import CachedCredential
from dragoman.credentials.secret import Secret
from dragoman.gateway.upstreams import keyring


class Mint:
    """A source that creates a new token for each read, when the test allows it."""

    pause = 5.0
    renews = True

    def __init__(self, life: float | None = None) -> None:
        self.now = 1000.0
        self.set_forward = 0.0
        """How far the wall clock was set."""
        self.ttl: float | None = None
        self.life = life
        self.made = 0
        self.broken = False
        self.go = asyncio.Event()
        self.go.set()

    def stamp(self) -> Stamp:
        return Stamp()

    async def read(self, *, force: bool) -> Reading | ReadProblem:
        self.made += 1
        await self.go.wait()
        if self.broken:
            return ReadProblem("the mint is closed")
        expires = None if self.life is None else self.now + self.set_forward + self.life
        return Reading(Secret(f"t{self.made}"), expires, self.ttl)

    def source(self) -> CachedCredential:
        return CachedCredential(
            self, name="upper", clock=lambda: self.now + self.set_forward, monotonic=lambda: self.now
        )


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


def test_a_short_lived_token_is_not_renewed_all_the_time() -> None:
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


def test_a_slow_renewal_does_not_delay_requests_while_the_old_token_is_valid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        monkeypatch.setattr("dragoman.credentials.cache.MAX_WAIT", 0.01)
        mint = Mint(life=100)
        source = mint.source()
        await source.token()
        mint.now += 95
        mint.go.clear()
        assert revealed(await source.token()) == "t1"
        waiting = [asyncio.create_task(source.token()) for _ in range(10)]
        await asyncio.sleep(0)
        mint.now += 10  # expired: requests must wait for the read now
        last = asyncio.create_task(source.token())
        assert {revealed(token) for token in await asyncio.gather(*waiting)} <= {"t1", "t2"}
        mint.go.set()
        assert revealed(await last) == "t2"
        assert mint.made == 2

    asyncio.run(scenario())


def test_a_failing_source_is_not_read_again_at_once() -> None:
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


def test_a_read_that_began_before_a_refusal_does_not_count() -> None:
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
        # The renewal gave another token than the refused one, so no further read is needed.
        assert {revealed(token) for token in await asyncio.gather(*forced)} == {"t2"}
        assert mint.made == 2

    asyncio.run(scenario())


def test_closing_cancels_a_read() -> None:
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


def test_a_token_that_was_refused_many_times_is_renewed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    mint = Mint()
    monkeypatch.setattr(keyring, "open_credential", lambda spec, **_: mint.source())

    async def scenario() -> None:
        keys = keyring.Keyring({})
        config = loads('[upstreams.upper]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:1"')
        upper = config.upstreams["upper"]
        url = upper.url("/v1/chat/completions")
        refused = await keys.headers(upper, url)
        renewed = await asyncio.gather(*(keys.headers(upper, url, refused=refused) for _ in range(100)))
        assert refused["authorization"] == "Bearer t1"
        assert {headers["authorization"] for headers in renewed} == {"Bearer t2"}
        assert mint.made == 2

    asyncio.run(scenario())


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
def test_a_pause_uses_the_monotonic_clock(jump: float) -> None:
    async def scenario() -> None:
        mint = Mint()
        source = mint.source()
        await source.token()
        mint.broken = True
        await source.token(force=True)
        mint.set_forward = jump
        await source.token(force=True)
        assert mint.made == 2, "still paused"
        mint.now += 5
        await source.token(force=True)
        assert mint.made == 3

    asyncio.run(scenario())


def test_a_ttl_uses_the_monotonic_clock() -> None:
    async def scenario() -> None:
        mint = Mint()
        mint.ttl = 100
        source = mint.source()
        assert revealed(await source.token()) == "t1"
        mint.set_forward = -86_400
        mint.now += 89
        assert revealed(await source.token()) == "t1"
        mint.now += 2
        assert revealed(await source.token()) == "t2"

    asyncio.run(scenario())


class Changing(Mint):
    """A file that another program changes and then locks."""

    renews = False
    pause = 0.25
    version = 0

    def stamp(self) -> Stamp:
        return Stamp((self.version,))


def test_a_read_that_hangs_does_not_delay_requests_while_a_key_is_cached(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        place = Changing()
        source = place.source()
        await source.token()
        place.version += 1
        place.go.clear()
        async with asyncio.timeout(60):
            for _ in range(2):
                assert revealed(await source.token()) == "t1"
        assert caplog.text.count("still using #") == 1
        place.broken = True
        place.go.set()
        await asyncio.sleep(0.01)
        place.now += 1
        place.go.clear()
        # The last read failed, so the next one runs in the background. A wait for it would outlast the test.
        monkeypatch.setattr("dragoman.credentials.cache.MAX_WAIT", 3600)
        async with asyncio.timeout(60):
            assert revealed(await source.token()) == "t1"
        place.broken = False
        place.go.set()
        await asyncio.sleep(0.01)
        assert revealed(await source.token()) == "t3"

    asyncio.run(scenario())
