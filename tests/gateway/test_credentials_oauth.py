"""OAuth token files of other programs: read, renewed, written back, and shared with their owner."""

import asyncio
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from credential_places import NOW, Clock, full_report

from dragoman.credentials import CredentialError, CredentialSource, open_credential, parse
from dragoman.credentials.base import ReadProblem
from dragoman.credentials.secret import Secret

URL = "https://auth.example/token"
SOON, LATER = NOW + 5, NOW + 3600


class Issuer:
    """A token endpoint whose refresh tokens are good for one use."""

    def __init__(self, refresh: str = "refresh-0", life: int = 3600) -> None:
        self.refresh = refresh
        self.life = life
        self.issued = 0
        self.asked: list[dict[str, str]] = []
        self.answer: tuple[int, bytes] | ReadProblem | None = None
        self.rotates = True

    async def __call__(
        self, url: str, fields: Mapping[str, Secret], body: str
    ) -> tuple[int, bytes] | ReadProblem:
        self.asked.append(
            {name: value.reveal() for name, value in fields.items()} | {"url": url, "body": body}
        )
        await asyncio.sleep(0)
        if self.answer is not None:
            return self.answer
        if self.asked[-1]["refresh_token"] != self.refresh:
            return 400, b'{"error": "invalid_grant", "error_description": "hidden-description"}'
        self.issued += 1
        new = {"access_token": f"access-{self.issued}", "expires_in": self.life, "id_token": "id-new"}
        if self.rotates:
            self.refresh = f"refresh-{self.issued}"
            new["refresh_token"] = self.refresh
        return 200, json.dumps(new).encode()


class Setup:
    """A file, an endpoint, a clock, and the credential over them."""

    def __init__(self, folder: Path, content: Any = None, **options: Any) -> None:
        self.path = folder / "creds.json"
        self.issuer = Issuer()
        self.clock = Clock()
        self.options = {"token_url": URL, "client_id": "the-client"} | options
        self.write(
            content or {"access_token": "access-0", "refresh_token": "refresh-0", "expiry_date": SOON * 1000}
        )

    def write(self, content: Any) -> None:
        self.path.write_text(json.dumps(content))

    def stored(self) -> Any:
        return json.loads(self.path.read_text())

    def open(self, environment: Mapping[str, str] | None = None) -> CredentialSource:
        options = {name: value for name, value in self.options.items() if value is not None}
        return open_credential(
            parse({"oauth": str(self.path), **options}),
            name="upper",
            environment=environment or {},
            clock=self.clock,
            monotonic=self.clock,
            post=self.issuer,
        )


async def given(source: CredentialSource, *, force: bool = False) -> str:
    token = await source.token(force=force)
    assert token.secret is not None
    return token.secret.reveal()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.credentials.oauth.RECHECK_DELAYS", (0.0, 0.001))


SHAPES: list[tuple[dict[str, Any], str]] = [
    ({"access_token": "a", "refresh_token": "r", "expiry_date": LATER * 1000, "scope": "s"}, ""),
    ({"claudeAiOauth": {"accessToken": "a", "refreshToken": "r", "expiresAt": LATER * 1000}}, ""),
    (
        {"OPENAI_API_KEY": None, "tokens": {"access_token": "a", "refresh_token": "r"}, "last_refresh": "x"},
        "",
    ),
    ({"anthropic": {"type": "oauth", "access": "a", "refresh": "r", "expires": LATER * 1000}}, "anthropic"),
    ({"token": "a", "refresh_token": "r", "token_uri": URL, "expiry": "2027-01-15T09:00:00Z"}, ""),
    ({"access_token": "a", "refresh_token": "r", "expires_at": LATER}, ""),
    ({"access_token": "a", "refresh_token": "r", "expires_in": 10**9}, ""),
]


@pytest.mark.parametrize(("content", "field"), SHAPES)
def test_a_valid_token_is_used_unchanged(tmp_path: Path, content: dict[str, Any], field: str) -> None:
    setup = Setup(tmp_path, content, field=field or None)
    assert asyncio.run(given(setup.open())) == "a"
    assert setup.issuer.asked == []


def test_a_token_about_to_expire_is_renewed_once_for_all_requests(tmp_path: Path) -> None:
    async def scenario() -> None:
        setup = Setup(tmp_path)
        before = setup.path.read_bytes()
        source = setup.open()
        assert set(await asyncio.gather(*(given(source) for _ in range(100)))) == {"access-1"}
        assert setup.issuer.asked == [
            {
                "grant_type": "refresh_token",
                "refresh_token": "refresh-0",
                "client_id": "the-client",
                "url": URL,
                "body": "form",
            }
        ]
        assert setup.path.read_bytes() == before, "nothing is written unless the config says so"
        setup.clock.now += 3541
        assert await given(source) == "access-2", "uses the refresh token of the first refresh"
        assert (await source.token()).expires == setup.clock.now + 3600

    asyncio.run(scenario())


def test_a_refused_token_is_renewed_only_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        setup = Setup(tmp_path, {"access_token": "a", "refresh_token": "refresh-0", "expires_at": LATER})
        source = setup.open()
        assert await given(source) == "a"
        assert await given(source, force=True) == "access-1"
        for _ in range(5):
            assert await given(source, force=True) == "access-1"
        setup.clock.now += 31
        assert await given(source, force=True) == "access-2"

    asyncio.run(scenario())


def test_a_change_by_another_program_is_used_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        setup = Setup(tmp_path)
        source = setup.open()
        assert await given(source) == "access-1"
        setup.write({"access_token": "theirs", "refresh_token": "their-refresh", "expires_at": LATER})
        assert await given(source) == "theirs"
        assert await given(source, force=True) == "theirs", (
            "the token was just refreshed, so another refresh cannot help"
        )
        assert setup.issuer.issued == 1

    asyncio.run(scenario())


def test_a_race_that_another_program_wins_is_no_failure(tmp_path: Path) -> None:
    async def scenario() -> None:
        setup = Setup(tmp_path)
        setup.issuer.refresh = "refresh-used-up-by-them"
        source = setup.open()

        async def other_program(
            url: str, fields: Mapping[str, Secret], body: str
        ) -> tuple[int, bytes] | ReadProblem:
            setup.write({"access_token": "theirs", "refresh_token": "x", "expiry_date": LATER * 1000})
            return 400, b'{"error": "invalid_grant"}'

        source = open_credential(
            parse({"oauth": str(setup.path), "token_url": URL}), clock=setup.clock, post=other_program
        )
        assert await given(source) == "theirs"

    asyncio.run(scenario())


def test_a_renewed_token_is_written_back_in_the_files_format(tmp_path: Path) -> None:
    async def scenario() -> None:
        content = {
            "keep": [1, {"x": None}],
            "tokens": {
                "accessToken": "access-0",
                "refreshToken": "refresh-0",
                "id_token": "id-old",
                "expiresAt": SOON * 1000,
                "expiry": "2027-01-15T08:00:05Z",
                "expires_in": 5,
                "expires": "1800000005",
                "expires_at": int(SOON),
            },
        }
        setup = Setup(tmp_path, content, write_back=True)
        setup.path.chmod(0o640)
        link = tmp_path / "link.json"
        link.symlink_to(setup.path)
        setup.path, real = link, setup.path
        source = setup.open()
        assert await given(source) == "access-1"
        assert link.is_symlink()
        assert stat.S_IMODE(real.stat().st_mode) == 0o640
        assert setup.stored() == {
            "keep": [1, {"x": None}],
            "tokens": {
                "accessToken": "access-1",
                "refreshToken": "refresh-1",
                "id_token": "id-new",
                "expiresAt": LATER * 1000,
                "expiry": "2027-01-15T09:00:00Z",
                "expires_in": 3600,
                "expires": "1800003600",
                "expires_at": int(LATER),
            },
        }
        assert set(os.listdir(tmp_path)) == {"creds.json", "link.json"}
        for _ in range(3):
            assert await given(source) == "access-1"
        assert setup.issuer.issued == 1
        setup.clock.now += 3550
        assert await given(source) == "access-2"
        assert setup.stored()["tokens"]["refreshToken"] == "refresh-2"

    asyncio.run(scenario())


def test_workers_that_share_a_file_renew_one_at_a_time(tmp_path: Path) -> None:
    async def scenario() -> None:
        setup = Setup(tmp_path, write_back=True)
        workers = [setup.open() for _ in range(8)]
        assert set(await asyncio.gather(*(given(worker) for worker in workers))) == {"access-1"}
        assert setup.issuer.issued == 1

    asyncio.run(scenario())


def test_a_newer_file_is_not_overwritten(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        setup = Setup(tmp_path, write_back=True)
        theirs = {"access_token": "theirs", "refresh_token": "x", "expiry_date": LATER * 1000}

        async def slow(url: str, fields: Mapping[str, Secret], body: str) -> tuple[int, bytes] | ReadProblem:
            setup.write(theirs)
            return await setup.issuer(url, fields, body)

        spec = parse({"oauth": str(setup.path), "token_url": URL, "write_back": True})
        source = open_credential(spec, clock=setup.clock, post=slow)
        assert await given(source) == "access-1"
        assert setup.stored() == theirs
        assert "not written back" in caplog.text
        assert await given(source) == "theirs"

    asyncio.run(scenario())


def test_a_file_that_cannot_be_written_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    setup = Setup(tmp_path, write_back=True)
    monkeypatch.setattr("os.replace", full)
    assert asyncio.run(given(setup.open())) == "access-1"
    assert "cannot be written (No space left on device)" in caplog.text
    assert [entry.name for entry in tmp_path.iterdir()] == ["creds.json"]


def test_a_file_that_only_has_a_refresh_token_is_enough(tmp_path: Path) -> None:
    """As in gcloud's application default credentials: the file also holds the client id."""
    content = {
        "client_id": "id",
        "client_secret": "s",
        "refresh_token": "refresh-0",
        "type": "authorized_user",
    }
    setup = Setup(tmp_path, content, client_id=None, body="json")
    setup.issuer.rotates = False
    assert asyncio.run(given(setup.open())) == "access-1"
    assert setup.issuer.asked[0].items() >= {"client_id": "id", "client_secret": "s", "body": "json"}.items()


def test_the_client_secret_may_come_from_the_environment(tmp_path: Path) -> None:
    setup = Setup(tmp_path, client_secret="env:APP_SECRET")
    assert asyncio.run(given(setup.open({"APP_SECRET": "s"}))) == "access-1"
    assert setup.issuer.asked[0]["client_secret"] == "s"
    setup = Setup(tmp_path, {"refresh_token": "refresh-0"}, client_secret="env:APP_SECRET")
    with pytest.raises(CredentialError, match="variable APP_SECRET for `client_secret` is not set"):
        asyncio.run(given(setup.open()))


def test_without_an_endpoint_only_the_owner_of_the_file_renews(tmp_path: Path) -> None:
    setup = Setup(tmp_path, token_url=None)
    setup.clock.now = LATER
    source = setup.open()
    assert asyncio.run(given(source)) == "access-0"
    setup.write({"refresh_token": "r"})
    with pytest.raises(CredentialError, match="has no access token and no token endpoint"):
        asyncio.run(given(setup.open()))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            (400, b'{"error": "invalid_grant"}'),
            "refused the refresh token in .* \\(HTTP 400, invalid_grant\\); sign",
        ),
        ((401, b'{"error": "hidden-code"}'), "refused the refresh token in .* \\(HTTP 401\\); sign in again"),
        ((500, b"<html>hidden-page"), "auth.example gave no token \\(HTTP 500\\)"),
        ((302, b""), "gave no token \\(HTTP 302\\)"),
        ((200, b'{"hidden-token": 1}'), "gave no token \\(HTTP 200\\)"),
        (ReadProblem("cannot be reached (ClientConnectorError)"), "auth.example cannot be reached"),
    ],
)
def test_the_error_of_a_failed_refresh_hides_secrets(
    tmp_path: Path, answer: tuple[int, bytes] | ReadProblem, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        setup = Setup(
            tmp_path, {"access_token": "access-0", "refresh_token": "refresh-0", "expires_at": NOW - 1}
        )
        setup.issuer.answer = answer
        with pytest.raises(CredentialError, match=why) as caught:
            await given(setup.open())
        for secret in ("hidden", "access-0", "refresh-0"):
            assert secret not in full_report(caught.value) + caplog.text
        # A token that is still valid stays in use, and the next request tries again.
        setup.write({"access_token": "access-0", "refresh_token": "refresh-0", "expires_at": SOON})
        source = setup.open()
        assert await given(source) == "access-0"
        assert "until it expires" in caplog.text
        setup.issuer.answer = None
        setup.clock.now += 30
        assert await given(source) == "access-1"

    asyncio.run(scenario())


@pytest.mark.parametrize("content", [{}, [], {"a": {"access_token": "x"}, "b": {"access_token": "y"}}])
def test_a_file_without_tokens_is_an_error(tmp_path: Path, content: Any) -> None:
    setup = Setup(tmp_path)
    setup.write(content)
    with pytest.raises(CredentialError, match="has no tokens in it; sign in with the program that owns it"):
        asyncio.run(given(setup.open()))


def test_an_endpoint_named_by_the_file_must_be_safe_too(tmp_path: Path) -> None:
    content = {"refresh_token": "refresh-0", "token_uri": "http://evil.example/token"}
    setup = Setup(tmp_path, content, token_url=None)
    with pytest.raises(CredentialError, match="has an invalid token endpoint"):
        asyncio.run(given(setup.open()))
    assert setup.issuer.asked == []


@pytest.mark.parametrize("body", ["form", "json"])
def test_a_refresh_over_a_real_socket(tmp_path: Path, body: str) -> None:
    async def scenario() -> None:
        seen: list[dict[str, Any]] = []

        async def endpoint(request: web.Request) -> web.Response:
            seen.append(await request.json() if body == "json" else dict(await request.post()))
            if len(seen) == 2:
                raise web.HTTPFound("/elsewhere")
            return web.json_response({"access_token": "new", "expires_in": 3600})

        app = web.Application()
        app.router.add_post("/token", endpoint)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/token"
        path = tmp_path / "creds.json"
        path.write_text(json.dumps({"refresh_token": "r&d"}))
        written = {"oauth": str(path), "token_url": url, "body": body}
        assert await given(open_credential(parse(written))) == "new"
        assert seen == [{"grant_type": "refresh_token", "refresh_token": "r&d"}]
        with pytest.raises(CredentialError, match="HTTP 302"):
            await given(open_credential(parse(written)))
        await runner.cleanup()
        with pytest.raises(CredentialError, match=r"127\.0\.0\.1 refuses connections"):
            await given(open_credential(parse(written)))

    asyncio.run(scenario())
