"""Find the secret and its expiry in text or JSON.

Nothing here raises: a traceback could show the secret.
"""

from __future__ import annotations

import base64
import binascii
import codecs
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from . import protobuf
from .base import Reading, ReadProblem
from .secret import Secret

Json = Any

ABSOLUTE = (
    *("expires_at", "expiresAt", "expiry_date", "expiryDate", "expiry", "expires", "expired"),
    *("expirationTimestamp", "expiration", "token_expiry", "expires_on", "expiresOn"),
)
RELATIVE = ("expires_in", "expiresIn")
"""Names that programs use for the expiry: a point in time, or seconds from now."""

COMMON_FIELDS = (
    *("access_token", "accessToken", "token", "api_key", "apiKey", "key", "secret", "value"),
    *("status.token", "data.token", "auth.client_token"),
)
"""Where the JSON of a command has its token if the config has no `field` (Kubernetes, Vault, clouds)."""


def as_text(data: bytes | str) -> str | None:
    """The text without a byte order mark and surrounding whitespace; None if `data` is not text."""
    if isinstance(data, str):
        return data.strip().strip("\0")
    encoding = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return data.decode(encoding).strip().strip("\0")
    except UnicodeDecodeError:
        return None


def as_json(text: str | bytes) -> Json:
    """The JSON value; None if `text` is not JSON."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def as_table(value: Json) -> dict[str, Json]:
    """The JSON object; an empty one if `value` is something else."""
    return cast("dict[str, Json]", value) if isinstance(value, dict) else {}


def extract(data: bytes | str, field: str, *, now: float) -> Reading | ReadProblem:
    """The secret in `data`: all of it, or the member at `field`."""
    text = as_text(data)
    if text is None:
        return ReadProblem("does not contain text")
    if not field:
        return _plain(text)
    document = as_json(text)
    value, siblings = member(document, field)
    if value is None and not isinstance(document, dict):
        return ReadProblem(f"does not contain a JSON object, so there is no `{field}`")
    if not isinstance(value, str) or not value.strip():
        return ReadProblem(
            f"has no text at `{field}`: sign in again with the program that owns it, or correct `field`"
        )
    return _reading(value.strip(), expiry(siblings, since=now))


def extract_protobuf(data: bytes, path: str, expires: str) -> Reading | ReadProblem:
    """The token at `path` of a protobuf value, with the expiry at `expires` of the message that holds it."""
    text = (as_text(data) or "") if data.lstrip()[:1] in (b"{", b"[", b'"') else ""
    document = as_json(text) if text else None
    if isinstance(document, (dict, list)):
        kind = "object" if isinstance(document, dict) else "list"
        return ReadProblem(
            f"contains a JSON {kind} and no protobuf token, as after signing out: "
            "sign in with the program that owns it"
        )
    if not data.strip():
        return ReadProblem("is empty: sign in with the program that owns it")
    found = protobuf.find(document.encode() if isinstance(document, str) else data, protobuf.parse_path(path))
    if isinstance(found, ReadProblem):
        return ReadProblem(f"{found.why}: it is no token; sign in with the program that owns it")
    token = as_text(found.value) if isinstance(found.value, bytes) else None
    if not token:
        return ReadProblem(f"has no text at `{path}`: sign in again with the program that owns it")
    at = protobuf.find(found.message, protobuf.parse_path(expires)) if expires else None
    return _reading(token, parse_time(at.value) if isinstance(at, protobuf.FieldValue) else None)


def from_output(data: bytes, field: str, *, now: float) -> Reading | ReadProblem:
    """The secret in the output of a command: plain text, or JSON with common names."""
    text = as_text(data) or ""
    table = as_table(as_json(text))
    if field or not table:
        return extract(data, field, now=now)
    for name in COMMON_FIELDS:
        value, siblings = member(table, name)
        if isinstance(value, str) and value.strip():
            return _reading(value.strip(), expiry(siblings, since=now))
    return ReadProblem("printed JSON without a token under a common name: set `field` to its path")


def member(node: Json, field: str) -> tuple[Json, Mapping[str, Json]]:
    """The value at `a.b.c`, and the object that contains it. Names may have dots; a string may hold JSON."""
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
    """When the token in this object expires, in seconds since the epoch. `since` is when it was written."""
    for name in ABSOLUTE:
        if (at := parse_time(table.get(name))) is not None:
            return at
    for name in RELATIVE:
        if (seconds := _number(table.get(name))) is not None:
            return since + seconds
    return None


def renewal(expires: float, now: float) -> float:
    """When to renew a token from `now`: a minute before it expires, or in the last tenth of a short life."""
    return expires - min(60.0, (expires - now) / 10)


def parse_time(value: Json) -> float | None:
    """A point in time as programs write it: seconds, milliseconds, or ISO 8601.

    >>> parse_time(1_700_000_000), parse_time(1_700_000_000_000), parse_time("2023-11-14T22:13:20Z")
    (1700000000.0, 1700000000.0, 1700000000.0)
    """
    number = _number(value)
    if number is not None:
        if number < 1e9:  # before 2001: a duration or zero, not a date
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
    """The `exp` claim of a JSON Web Token."""
    parts = token.split(".")
    if len(parts) != 3 or not token.startswith("eyJ"):
        return None
    try:
        claims = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
    except (binascii.Error, ValueError):
        return None
    return parse_time(as_table(as_json(claims)).get("exp"))


def _plain(text: str) -> Reading | ReadProblem:
    if text.startswith("{"):
        return ReadProblem("contains a JSON object: set `field` to the path of the secret")
    if text.startswith('"'):
        unquoted = as_json(text)
        text = unquoted if isinstance(unquoted, str) else text
    return _reading(text, None) if text else ReadProblem("is empty")


def unsendable(text: str) -> ReadProblem | None:
    """Why the text cannot be sent in an HTTP header; None if it can."""
    if text.isascii() and text.isprintable():
        return None
    return ReadProblem("contains characters that are not allowed in an HTTP header, such as a line break")


def _reading(text: str, expires: float | None) -> Reading | ReadProblem:
    if problem := unsendable(text):
        return problem
    return Reading(Secret(text), jwt_expiry(text) if expires is None else expires)
