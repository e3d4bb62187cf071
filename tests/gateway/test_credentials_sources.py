"""Special cases of each credential source: files, expiry, commands."""

import asyncio
import base64
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from credential_places import NOW, Clock, age, opened, problem, read

from dragoman.credentials import Token
from dragoman.credentials.values import as_text, parse_time


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-SIc", code, *arguments]


# Files


def test_a_tilde_means_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "key").write_text("k")
    assert read(opened("file:~/key")) == ("k", None)
    (tmp_path / "key").unlink()
    assert problem(opened("file:~/key")) == "the file ~/key does not exist; create it, or correct the path"


def test_a_fresh_file_is_read_again_until_its_date_is_old_enough(tmp_path: Path) -> None:
    async def scenario() -> None:
        path = tmp_path / "key"
        path.write_text("one")
        source = opened(f"file:{path}")
        await source.token()
        before = path.stat()
        path.write_text("two")  # the same size, and, on a coarse clock, the same time
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        token = await source.token()
        assert token.secret is not None
        assert token.secret.reveal() == "two"

    asyncio.run(scenario())


def test_a_changed_symlink_is_noticed(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
        age(tmp_path / name)
    link = tmp_path / "key"
    link.symlink_to("one")
    source = opened(f"file:{link}")
    assert read(source) == ("one", None)
    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").rename(link)
    assert read(source) == ("two", None)


@pytest.mark.parametrize(
    ("content", "field", "why"),
    [
        ("", "", "is empty"),
        ('{"token": "hidden"}', "", "contains a JSON object: set `field`"),
        ("hidden", "a", "does not contain a JSON object, so there is no `a`"),
        ('{"a": {"b": ""}}', "a.b", "has no text at `a.b`"),
        ('{"a": 5}', "a", "has no text at `a`"),
        ('{"a": "hidden"', "a", "does not contain a JSON object"),
        ("x" * 1_100_000, "", "is too big for a credential"),
    ],
)
def test_a_file_without_a_secret_says_why(tmp_path: Path, content: str, field: str, why: str) -> None:
    path = tmp_path / "key"
    path.write_text(content)
    said = problem(opened({"file": str(path)} | ({"field": field} if field else {})))
    assert why in said
    assert "hidden" not in said


def test_a_folder_is_an_error(tmp_path: Path) -> None:
    assert problem(opened(f"file:{tmp_path}")).endswith("is a folder; name the file in it")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_files_with_windows_encoding_and_line_ends(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "key"
    path.write_bytes("key-1\r\n".encode(encoding))
    assert read(opened(f"file:{path}")) == ("key-1", None)
    assert as_text(b"\xff\x00\xfe") is None


def test_a_field_may_have_dots_and_be_inside_a_json_string(tmp_path: Path) -> None:
    path = tmp_path / "key"
    inner = json.dumps({"b": {"c.d": "deep"}, "expiresAt": 1})
    path.write_text(json.dumps({"a.x": inner}))
    assert read(opened({"file": str(path), "field": "a.x.b.c.d"})) == ("deep", None)


# Expiry


def jwt(claims: dict[str, Any]) -> str:
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJub25lIn0.{part}.c2ln"


@pytest.mark.parametrize(
    ("members", "expires"),
    [
        ({"expires_at": NOW + 90}, NOW + 90),
        ({"expiresAt": (NOW + 90) * 1000}, NOW + 90),
        ({"expiry_date": int((NOW + 90) * 1000)}, NOW + 90),
        ({"expires": str(int(NOW + 90))}, NOW + 90),
        ({"expiry": "2027-01-15T08:01:30Z"}, NOW + 90),
        ({"expired": "2027-01-15T17:01:30.000000000+09:00"}, NOW + 90),
        ({"expiry": "2027-01-15T08:01:30"}, NOW + 90),
        ({"expires_in": 90}, NOW + 90),
        ({"expires_at": 0, "expires_in": "90"}, NOW + 90),
        ({"expires_at": "soon", "expires_in": True}, None),
        ({}, None),
    ],
)
def test_every_format_of_expiry_is_read(members: dict[str, Any], expires: float | None) -> None:
    output = json.dumps({"access_token": "k", **members})
    assert read(opened({"command": python("import sys; print(sys.argv[1])", output)})) == ("k", expires)


def test_the_expiry_of_a_jwt_is_read(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text(jwt({"exp": NOW + 5}))
    assert read(opened(f"file:{path}"))[1] == NOW + 5
    for broken in (jwt({}), "eyJa.%%%.c", "eyJa.bm8.c", "eyJa.a.c"):
        path.write_text(broken)
        assert read(opened(f"file:{path}")) == (broken, None)


def test_a_timestamp_is_not_read_as_a_duration() -> None:
    assert parse_time(3600) is None
    assert parse_time(None) is None


# Commands


def test_a_command_runs_again_when_its_ttl_is_nearly_over(tmp_path: Path) -> None:
    count = "import sys; f = open(sys.argv[1], 'a+'); f.write('x'); f.seek(0); print(f'run-{len(f.read())}')"
    clock = Clock()
    source = opened({"command": python(count, str(tmp_path / "n")), "ttl": 100}, clock)
    assert read(source) == ("run-1", NOW + 100)
    clock.now += 89
    assert read(source)[0] == "run-1"
    clock.now += 2
    assert read(source) == ("run-2", NOW + 191)
    assert read(source, force=True)[0] == "run-3"


@pytest.mark.parametrize(
    "output",
    [
        {"token": "k"},
        {"apiKey": "k"},
        {"status": {"token": "k", "expirationTimestamp": "2030-01-01T00:00:00Z"}},
        {"auth": {"client_token": "k"}},
    ],
)
def test_the_json_output_of_a_command_is_read(output: dict[str, Any]) -> None:
    assert read(opened({"command": python("import sys; print(sys.argv[1])", json.dumps(output))}))[0] == "k"


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (
            "import sys; sys.stderr.write('hidden'); sys.exit('hidden')",
            "failed with exit code 1; run it by hand",
        ),
        ("import os; os.abort()", "failed with exit code -6"),
        ("pass", "printed nothing"),
        ("print('x' * 400_000)", "printed too much"),
        ("print('{\"hidden\": 1}')", "without a token under a common name: set `field`"),
        ("print('hidden\\nhidden')", "not allowed in an HTTP header"),
    ],
)
def test_the_error_of_a_failing_command_hides_its_output(code: str, why: str) -> None:
    said = problem(opened({"command": python(code)}))
    assert why in said
    assert "hidden" not in said
    assert said.count("python") == 1


SECRETS = {"OPENAI_API_KEY": "sk-1", "AWS_SECRET_ACCESS_KEY": "s", "DRAGOMAN_KEY": "k", "MY_TOKEN": "t"}
USUAL = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/home/me",
    "LC_ALL": "C.UTF-8",
    "XDG_RUNTIME_DIR": "/run/user/1",
    "SSH_AUTH_SOCK": "/run/agent",
    "GNUPGHOME": "/gpg",
    "https_proxy": "http://proxy:1",
}
SHOWN = "import os; print(','.join(sorted(set(os.environ) - {'LC_CTYPE', '__CF_USER_TEXT_ENCODING'})))"


@pytest.mark.parametrize("more", [(), ("MY_TOKEN", "AWS_PROFILE"), ("NOT_SET",)])
def test_a_command_gets_a_small_part_of_the_environment(more: tuple[str, ...]) -> None:
    environment = {**USUAL, **SECRETS, "AWS_PROFILE": "work"}
    source = opened({"command": python(SHOWN), "env": list(more)}, environment=environment)
    names = set(read(source)[0].split(","))
    assert names == {*USUAL, *(name for name in more if name in environment)}


def test_a_command_that_fails_says_that_it_may_lack_a_variable() -> None:
    said = problem(opened({"command": python("import os; os.environ['MY_TOKEN']")}, environment=SECRETS))
    assert "exit code 1" in said
    assert "`env`" in said


def test_a_missing_command_is_an_error() -> None:
    assert problem(opened("command:no-such-program-here")).endswith("is not installed, or not on the PATH")
    assert "cannot be started" in problem(opened({"command": ["/"]}))


def test_a_hanging_command_is_killed_with_its_children(tmp_path: Path) -> None:
    child = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(3600)"
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-SIc', *sys.argv[1:]])"
    mark = tmp_path / "pid"
    said = problem(opened({"command": python(parent, child, str(mark)), "timeout": 3}))
    assert "took more than 3 seconds" in said
    process = int(mark.read_text())
    deadline = time.monotonic() + 30
    while Path(f"/proc/{process}/stat").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.01)
    assert time.monotonic() < deadline


def test_the_event_loop_continues_while_a_command_runs() -> None:
    async def scenario() -> None:
        source = opened({"command": python("import time; time.sleep(0.3); print('k')")})
        asking = asyncio.create_task(source.token())
        beats = 0
        while not asking.done():
            await asyncio.sleep(0.01)
            beats += 1
        assert beats > 5

    asyncio.run(scenario())


def test_an_expired_token_of_another_program_is_used_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "key"
    path.write_text(json.dumps({"token": "k", "expiresAt": NOW - 5}))
    token: Token = asyncio.run(opened({"file": str(path), "field": "token"}).token())
    assert token.expires == NOW - 5
    assert "has expired; sign in again with the program that owns it" in caplog.text
