"""Tokens inside protobuf values of SQLite files, as Antigravity stores them."""

import base64
import json
import logging
import sqlite3
from pathlib import Path

import pytest
from credential_places import Clock, LogCollector, opened, problem, read, state_file
from hypothesis import given
from hypothesis import strategies as st
from support.protobuf import field, fixed32, message, oauth_topic, varint

from dragoman.credentials import parse, protobuf
from dragoman.credentials.base import ReadProblem
from dragoman.credentials.known import known_tables

KEY = "antigravityUnifiedStateSync.oauthToken"
INFO = "base64.1[1=oauthTokenInfoSentinelKey].2.1.base64"
TABLE = {"key": KEY, "protobuf": f"{INFO}.1", "expires": "4.1"}
SOON = 4_000_000_000


def state(path: Path, **rows: str | bytes) -> None:
    """A state file with these rows; `oauth` and `status` stand for Antigravity's two."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = {"oauth": KEY, "status": "antigravityAuthStatus"}
    if path.exists():
        path.unlink()
    database = state_file(path)
    for name, value in rows.items():
        database.execute("INSERT INTO ItemTable VALUES (?, ?)", (names[name], value))
    database.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("dragoman.credentials.known._FOLDERS", {})
    return tmp_path


def of(home: Path, program: str) -> Path:
    return home / ".config" / program / "User" / "globalStorage" / "state.vscdb"


@pytest.mark.parametrize("encoding", ["plain", "bytes", "quoted", "url-safe"])
def test_a_token_and_its_expiry(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "state.vscdb"
    text = oauth_topic("ya29.one", SOON)
    value: str | bytes = text
    if encoding == "bytes":
        value = text.encode()
    elif encoding == "quoted":
        value = json.dumps(text)
    elif encoding == "url-safe":
        value = text.rstrip("=").replace("+", "-").replace("/", "_")
    state(path, oauth=value)
    assert read(opened({"sqlite": str(path), **TABLE})) == ("ya29.one", SOON)


def test_a_token_without_an_expiry(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    state(path, oauth=oauth_topic("ya29.one"))
    assert read(opened({"sqlite": str(path), **TABLE})) == ("ya29.one", None)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (
            '{"status": "signedOut", "hidden": 1}',
            "contains a JSON object and no protobuf token, as after signing out",
        ),
        ("[1]", "contains a JSON list and no protobuf token"),
        ("", "is empty"),
        ("not base64 hidden!", "contains no base64: it is no token"),
        (base64.b64encode(b"hidden words"), "contains no protobuf message at `base64`"),
        (base64.b64encode(b"\x0a\xffhidden"), "contains no protobuf message at `base64`"),
        (
            base64.b64encode(message((2, "hidden"))),
            "contains no field `1[1=oauthTokenInfoSentinelKey]` at `base64`",
        ),
        (
            oauth_topic("ya29.hidden", sentinel="another"),
            "contains no field `1[1=oauthTokenInfoSentinelKey]`",
        ),
        (oauth_topic(""), "has no text at `"),
        (oauth_topic("ya29.hidden\nx"), "contains characters that are not allowed in an HTTP header"),
        (oauth_topic("hidden€"), "contains characters that are not allowed in an HTTP header"),
    ],
)
def test_a_value_without_a_token_is_refused_with_its_reason(
    tmp_path: Path, value: str | bytes, found: str
) -> None:
    path = tmp_path / "state.vscdb"
    state(path, oauth=value)
    said = problem(opened({"sqlite": str(path), **TABLE}))
    assert f"the row `{KEY}` of {path} {found}" in said
    assert "hidden" not in said


def test_a_number_where_a_token_should_be(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    state(path, oauth=base64.b64encode(message((1, 7))))
    written = {"sqlite": str(path), "key": KEY, "protobuf": "base64.1"}
    assert "has no text at `base64.1`" in problem(opened(written))
    assert "contains a number at `base64.1`, not a message" in problem(
        opened(written | {"protobuf": "base64.1.2"})
    )


def test_the_first_file_with_a_token_is_used(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name / "state.vscdb" for name in "abc")
    written = {"sqlite": [str(first), str(second), str(third)], **TABLE}
    assert problem(opened(written)).count("does not exist") == 3
    state(second, oauth='{"signedOut": true}')
    state(third, oauth=oauth_topic("ya29.three", SOON))
    source = opened(written)
    assert read(source)[0] == "ya29.three"
    state(first, oauth=oauth_topic("ya29.one", SOON))
    assert read(source)[0] == "ya29.one"


def test_an_expired_token_is_skipped(tmp_path: Path) -> None:
    paths = [tmp_path / name / "state.vscdb" for name in "ab"]
    clock = Clock()
    now = int(clock())
    state(paths[0], oauth=oauth_topic("ya29.old", now - 100))
    state(paths[1], oauth=oauth_topic("ya29.new", now + 100))
    written = {"sqlite": [*map(str, paths)], **TABLE}
    assert read(opened(written, clock)) == ("ya29.new", now + 100)
    state(paths[1], oauth=oauth_topic("ya29.older", now - 200))
    assert read(opened(written, clock)) == ("ya29.old", now - 100)


def test_a_locked_file_does_not_switch_to_another_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.credentials.sqlite.BUSY", 0.05)
    first, second = tmp_path / "a.vscdb", tmp_path / "b.vscdb"
    database = sqlite3.connect(first, isolation_level=None)
    database.execute("CREATE TABLE ItemTable (key TEXT, value BLOB)")
    database.execute("BEGIN EXCLUSIVE")
    state(second, oauth=oauth_topic("ya29.other", SOON))
    assert problem(opened({"sqlite": [str(first), str(second)], **TABLE})).endswith("(SQLITE_BUSY)")
    database.close()


def test_antigravity_by_its_name(home: Path) -> None:
    status = json.dumps({"apiKey": "ya29.status"})
    assert problem(opened("antigravity")).count("does not exist") == 2
    state(of(home, "Antigravity IDE"), oauth=oauth_topic("ya29.ide", SOON))
    source = opened("antigravity")
    assert read(source) == ("ya29.ide", SOON)
    state(of(home, "Antigravity"), status=status)
    assert read(source) == ("ya29.status", None)
    state(of(home, "Antigravity"), status=status, oauth=oauth_topic("ya29.oauth", SOON))
    assert read(source) == ("ya29.oauth", SOON)
    state(of(home, "Antigravity"), status=status, oauth='{"signedOut": true}')
    assert read(source) == ("ya29.status", None)


@pytest.mark.parametrize(
    ("platform", "folder"),
    [("darwin", "~/Library/Application Support"), ("linux", "~/.config"), ("win32", "%APPDATA%")],
)
def test_each_platform_has_its_folder(platform: str, folder: str) -> None:
    paths = [table["sqlite"] for table in known_tables("antigravity", platform)]
    state = "User/globalStorage/state.vscdb"
    assert list(dict.fromkeys(paths)) == [
        f"{folder}/{name}/{state}" for name in ("Antigravity", "Antigravity IDE")
    ]


def test_a_variable_at_the_beginning_of_a_path(tmp_path: Path) -> None:
    state(tmp_path / "Antigravity" / "state.vscdb", oauth=oauth_topic("ya29.one"))
    written = {"sqlite": "%APPDATA%/Antigravity/state.vscdb", **TABLE}
    assert read(opened(written, environment={"APPDATA": str(tmp_path)}))[0] == "ya29.one"
    assert "does not exist" in problem(opened(written, environment={}))


def test_nothing_of_the_value_is_logged(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    state(path, oauth=oauth_topic("ya29.hidden", 1_000_000_001))
    log = LogCollector()
    logging.getLogger().addHandler(log)
    try:
        read(opened({"sqlite": str(path), **TABLE}))
    finally:
        logging.getLogger().removeHandler(log)
    assert log.having("has expired")
    assert not log.having("hidden")


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ({"protobuf": "1..2"}, "a protobuf path is a list of field numbers"),
        ({"protobuf": "0"}, "a protobuf path is a list"),
        ({"protobuf": "536870912"}, "a protobuf path is a list"),
        ({"protobuf": "1[2=]"}, "a protobuf path is a list"),
        ({"protobuf": "1[2"}, "a protobuf path is a list"),
        ({"protobuf": "base64"}, "a protobuf path is a list"),
        ({"protobuf": "1.base6"}, "a protobuf path is a list"),
        ({"protobuf": 1}, "`protobuf` of a credential must be a non-empty text"),
        ({"protobuf": "1", "field": "a"}, "has one of them"),
        ({"expires": "4.1"}, "`expires` of a sqlite credential needs `protobuf`"),
        ({"sqlite": []}, "must name a file, or a list of files"),
        ({"sqlite": ["a", 1]}, "`sqlite` of a credential must be a non-empty text"),
    ],
)
def test_a_wrong_table_is_refused(written: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=r".+") as caught:
        parse({"sqlite": "a", "key": "k", **written})
    assert sentence in str(caught.value)


Fields = st.lists(
    st.tuples(st.integers(1, 2**29 - 1), st.integers(0, 2**64 - 1) | st.binary(max_size=50)), max_size=20
)


@given(Fields)
def test_written_messages_are_read_back(written: list[tuple[int, int | bytes]]) -> None:
    assert protobuf.fields(message(*written)) == written


def test_every_wire_type_is_read_and_no_other() -> None:
    whole = field(1, 300) + field(2, 1.5) + field(3, "text") + fixed32(4, 7)
    assert protobuf.fields(whole) == [(1, 300), (2, 0x3FF8000000000000), (3, b"text"), (4, 7)]
    cuts = [end for end in range(len(whole)) if protobuf.fields(whole[:end]) is not None]
    assert cuts == [0, 3, 12, 18]
    for wire in (3, 4, 6, 7):
        assert protobuf.fields(varint(8 + wire) + b"\0" * 20) is None
    assert protobuf.fields(b"\x00\x01") is None, "a field has a number"
    assert protobuf.fields(b"\x08" + b"\xff" * 10 + b"\x01") is None, "a number has 64 bits"
    assert protobuf.fields(field(1, 0) * (protobuf.MAX_FIELDS + 1)) is None


@given(st.binary(max_size=200), st.sampled_from([f"{INFO}.1", "1.2", "1[2=a].3", "base64.1"]))
def test_any_bytes_are_read_without_an_exception(data: bytes, path: str) -> None:
    found = protobuf.find(data, protobuf.parse_path(path))
    assert isinstance(found, ReadProblem | protobuf.FieldValue)
