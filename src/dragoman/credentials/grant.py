"""Read and write the JSON files in which programs keep OAuth tokens after their user signs in.

Programs use different names, and some wrap the tokens in an object: `{"claudeAiOauth": {"accessToken": …}}`
(Claude Code), `{"tokens": {"access_token": …}}` (Codex), `{"access_token": …, "expiry_date": milliseconds}`
(Gemini CLI).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import cast

import msgspec

from .base import ReadProblem
from .file import load
from .secret import Secret
from .values import ABSOLUTE, RELATIVE, Json, as_json, as_table, expiry, jwt_expiry, member, parse_time

ACCESS = ("access_token", "accessToken", "access", "token")
REFRESH = ("refresh_token", "refreshToken", "refresh")


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """An access token, and what is needed to refresh it."""

    access: Secret | None = None
    refresh: Secret | None = None
    expires: float | None = None
    token_url: str = ""
    client_id: str = ""
    client_secret: Secret | None = None
    extras: dict[str, Secret] = {}
    """Other members of the token endpoint's answer that such files also keep."""

    def same_tokens(self, other: Grant) -> bool:
        return self.access == other.access and self.refresh == other.refresh


def read_grant(path: str, shown: str, field: str) -> Grant | ReadProblem:
    """Read the tokens from the file."""
    data = load(path, shown)
    if isinstance(data, ReadProblem):
        return data
    table = _find(as_json(data), field)
    if table is None:
        where = f"at `{field}`" if field else "in it"
        return ReadProblem(
            f"the file {shown} has no tokens {where}; "
            "sign in with the program that owns it, or correct `field`"
        )
    return from_table(table, written=_modified(path))


def from_table(table: Mapping[str, Json], *, written: float) -> Grant:
    """Find the tokens under their known names. `written` is when a duration such as `expires_in` started."""
    access = _secret(table, ACCESS)
    expires = expiry(table, since=written)
    if expires is None and access is not None:
        expires = jwt_expiry(access.reveal())
    return Grant(
        access=access,
        refresh=_secret(table, REFRESH),
        expires=expires,
        token_url=_text(table.get("token_uri") or table.get("token_url")),
        client_id=_text(table.get("client_id")),
        client_secret=_secret(table, ("client_secret",)),
        extras={name: Secret(_text(table[name])) for name in ("id_token", "scope") if _text(table.get(name))},
    )


def write_grant(path: str, field: str, old: Grant, new: Grant, now: float) -> ReadProblem | None:
    """Replace the tokens of `old` by those of `new`. Does nothing if another program changed the file."""
    path = os.path.realpath(path)
    data = load(path, path)
    document = None if isinstance(data, ReadProblem) else as_json(data)
    table = _find(document, field)
    if table is None or not from_table(table, written=now).same_tokens(old):
        return ReadProblem("was changed by another program at the same time")
    _update(table, new, now)
    return _replace(path, msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")


def _find(document: Json, field: str) -> dict[str, Json] | None:
    """The object with the tokens: at `field`, else the document itself, else its only member with tokens."""
    if field:
        named, _ = member(document, field)
        return cast("dict[str, Json]", named) if isinstance(named, dict) else None
    table = as_table(document)
    candidates = [table, *(as_table(value) for value in table.values())]
    holders = [
        candidate for candidate in candidates if any(_text(candidate.get(n)) for n in (*ACCESS, *REFRESH))
    ]
    return holders[0] if holders and (holders[0] is table or len(holders) == 1) else None


def _update(table: dict[str, Json], new: Grant, now: float) -> None:
    if new.access is not None:
        table[_name(table, ACCESS)] = new.access.reveal()
    if new.refresh is not None:
        table[_name(table, REFRESH)] = new.refresh.reveal()
    for name, value in new.extras.items():
        if name in table:
            table[name] = value.reveal()
    if new.expires is None:
        return
    for name in ABSOLUTE:
        if name in table:
            table[name] = _same_format(table[name], new.expires)
    for name in RELATIVE:
        if name in table:
            table[name] = int(new.expires - now)


def _same_format(old: Json, at: float) -> Json:
    """`at` in the format that the program used: seconds, milliseconds or ISO 8601, as text or number."""
    if isinstance(old, str) and parse_time(old) is not None and not old.isdigit():
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    number = int(at * 1000) if (parse_time(old) or 0.0) != float(old or 0) else int(at)
    return str(number) if isinstance(old, str) else number


def _replace(path: str, data: bytes) -> ReadProblem | None:
    """Replace the file atomically: other programs see either the old or the new content."""
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".", suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            os.chmod(temporary, os.stat(path).st_mode & 0o777)
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        return ReadProblem(f"cannot be written ({error.strerror or 'unknown reason'})")
    return None


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _name(table: Mapping[str, Json], names: tuple[str, ...]) -> str:
    return next((name for name in names if name in table), names[0])


def _secret(table: Mapping[str, Json], names: tuple[str, ...]) -> Secret | None:
    return next((Secret(text) for name in names if (text := _text(table.get(name)))), None)


def _text(value: Json) -> str:
    return value.strip() if isinstance(value, str) else ""
