"""The table that `dragoman keys list` prints."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..printing import aligned


class KeyRow(msgspec.Struct, frozen=True, kw_only=True):
    """One key, without its secret. Times are in UTC."""

    name: str
    secret: str
    """The first characters of the secret, or where it is."""
    role: str
    team: str = ""
    models: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    state: str = ""
    """`revoked`, `expired`, or empty."""
    created: str = ""
    last_used: str = ""
    expires: str = ""


def table(rows: Sequence[KeyRow]) -> list[str]:
    """The rows as aligned lines below a head."""
    head = ["NAME", "ROLE", "TEAM", "SECRET", "MODELS", "LIMITS", "LAST USED", "EXPIRES"]
    return list(aligned([head, *(_cells(row) for row in rows)], range(len(head))))


def _cells(row: KeyRow) -> list[str]:
    return [
        row.name,
        row.role,
        row.team or "-",
        row.secret,
        ", ".join(row.models) or "all",
        "; ".join(row.limits) or "none",
        row.last_used or "-",
        row.state or row.expires or "never",
    ]
