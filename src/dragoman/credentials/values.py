"""Finding the secret, and when it expires, in what a place holds: plain text or JSON.

Nothing here raises: a traceback would show the text that was looked at.
"""

from __future__ import annotations

import base64
import binascii
import codecs
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from .base import Problem, Reading
from .secret import Secret

Json = Any

ABSOLUTE = (
    *("expires_at", "expiresAt", "expiry_date", "expiryDate", "expiry", "expires", "expired"),
    *("expirationTimestamp", "expiration", "token_expiry", "expires_on", "expiresOn"),
)
RELATIVE = ("expires_in", "expiresIn")
"""The names under which programs write down when a token ends: as a moment, or as seconds from now."""

USUAL = (
    *("access_token", "accessToken", "token", "api_key", "apiKey", "key", "secret", "value"),
    *("status.token", "data.token", "auth.client_token"),
)
"""Where a command's JSON usually has its token, when the config does not say (Kubernetes, Vault, clouds)."""


def as_text(data: bytes | str) -> str | None:
    """The text, without a byte order mark and the blanks around it; None when it is no text."""
    if isinstance(data, str):
        return data.strip().strip("\0")
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return data.decode(encoding).strip().strip("\0")
    except UnicodeDecodeError:
        return None


def as_json(text: str | bytes) -> Json:
    """The JSON value, or None when it is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def as_table(value: Json) -> dict[str, Json]:
    """The JSON object; an empty one when it is something else."""
    return cast("dict[str, Json]", value) if isinstance(value, dict) else {}


def extract(data: bytes | str, field: str, *, now: float) -> Reading | Problem:
    """The secret in `data`: all of it, or the member that `field` names."""
    text = as_text(data)
    if text is None:
        return Problem("does not hold text")
    if not field:
        return _plain(text)
    document = as_json(text)
    value, siblings = member(document, field)
    if value is None and not isinstance(document, dict):
        return Problem(f"does not hold a JSON object, so it has no `{field}`")
    if not isinstance(value, str) or not value.strip():
        return Problem(
            f"has no text at `{field}`: sign in again in the program that keeps it, or mend `field`"
        )
    return _reading(value.strip(), expiry(siblings, since=now))


def from_output(data: bytes, field: str, *, now: float) -> Reading | Problem:
    """The secret in what a command printed: plain, or JSON with the usual names."""
    text = as_text(data) or ""
    table = as_table(as_json(text))
    if field or not table:
        return extract(data, field, now=now)
    for name in USUAL:
        value, siblings = member(table, name)
        if isinstance(value, str) and value.strip():
            return _reading(value.strip(), expiry(siblings, since=now))
    return Problem("printed JSON without a token of a usual name: say with `field` where it is")


def member(node: Json, field: str) -> tuple[Json, Mapping[str, Json]]:
    """The value at `a.b.c` and the object it stands in. Names may have dots; a string may hold JSON."""
    if isinstance(node, str):
        node = as_json(node)
    table = as_table(node)
    if field in table:
        return table[field], table
    for at, character in enumerate(field):
        if character == "." and field[:at] in table:
            value, siblings = member(table[field[:at]], field[at + 1 :])
            if value is not None:
                return value, siblings
    return None, {}


def expiry(table: Mapping[str, Json], *, since: float) -> float | None:
    """When the token in this object ends, in seconds since the epoch. `since` is when it was written."""
    for name in ABSOLUTE:
        if (at := moment(table.get(name))) is not None:
            return at
    for name in RELATIVE:
        if (seconds := _number(table.get(name))) is not None:
            return since + seconds
    return None


def renewal(expires: float, now: float) -> float:
    """When to renew a token got now: a minute before its end, or in the last tenth of a short life."""
    return expires - min(60.0, (expires - now) / 10)


def moment(value: Json) -> float | None:
    """A point in time as programs write it: seconds, milliseconds, or ISO 8601.

    >>> moment(1_700_000_000), moment(1_700_000_000_000), moment("2023-11-14T22:13:20Z")
    (1700000000.0, 1700000000.0, 1700000000.0)
    """
    number = _number(value)
    if number is not None:
        if number < 1e9:  # before 2001: no moment, but a duration or a zero
            return None
        return number / 1000 if number > 1e11 else number
    return _iso(value) if isinstance(value, str) else None


def _number(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _iso(text: str) -> float | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def jwt_expiry(token: str) -> float | None:
    """A JSON Web Token says itself when it ends."""
    parts = token.split(".")
    if len(parts) != 3 or not token.startswith("eyJ"):
        return None
    try:
        claims = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
    except (binascii.Error, ValueError):
        return None
    return moment(as_table(as_json(claims)).get("exp"))


def _plain(text: str) -> Reading | Problem:
    if text.startswith("{"):
        return Problem("holds a JSON object: say with `field` which member is the secret")
    if text.startswith('"'):
        unquoted = as_json(text)
        text = unquoted if isinstance(unquoted, str) else text
    return _reading(text, None) if text else Problem("is empty")


def unsendable(text: str) -> Problem | None:
    """Why this cannot be put on a request, if so."""
    if text.isascii() and text.isprintable():
        return None
    return Problem("holds characters that no HTTP header can carry, such as a line break")


def _reading(text: str, expires: float | None) -> Reading | Problem:
    if problem := unsendable(text):
        return problem
    return Reading(Secret(text), jwt_expiry(text) if expires is None else expires)
