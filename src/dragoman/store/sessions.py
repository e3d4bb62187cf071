"""Conversations, one row for each: the part that every engine shares.

`sessions` holds the time, the key and the first words of each conversation. It is indexed by the time of
the last request, so a list reads only the rows that it shows. The sums of those are in `usage_by_session`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .types import Receipt, SessionQuery, SessionRow, UsageRow
from .usage import SUMS

COLUMNS = SessionRow.__struct_fields__[:-1]


def merged(receipts: Iterable[Receipt]) -> list[tuple[Any, ...]]:
    """A row for each conversation of `receipts`, in the order of its id."""
    found: dict[str, SessionRow] = {}
    for receipt in sorted(receipts, key=lambda one: one.at):
        if not receipt.session:
            continue
        was = found.get(receipt.session)
        found[receipt.session] = SessionRow(
            receipt.session,
            receipt.key,
            receipt.team,
            (was and was.profile) or receipt.profile,
            (was and was.opening) or receipt.opening,
            was.first if was else receipt.at,
            receipt.at,
        )
    return [tuple(getattr(found[name], column) for column in COLUMNS) for name in sorted(found)]


def statement(query: SessionQuery, schema: str = "") -> tuple[str, list[Any]]:
    """The SQL of a query, with `?` for each value. `schema` goes before the name of a table."""
    conditions, values = ["last >= ?"], [query.since]
    for name in ("session", "key"):
        if (wanted := getattr(query, name)) is not None:
            conditions.append(f"{name} = ?")
            values.append(wanted)
    if query.after is not None:
        # The first bound alone lets the index begin at the right place.
        conditions += ["last <= ?", "(last, session) < (?, ?)"]
        values += [query.after[0], *query.after]
    where = " AND ".join(conditions)
    order = "ORDER BY last DESC, session DESC LIMIT ?"
    return f"SELECT {', '.join(COLUMNS)} FROM {schema}sessions WHERE {where} {order}", [*values, query.limit]


def usage_statement(sessions: Sequence[str], key: str | None, schema: str = "") -> tuple[str, list[Any]]:
    """The SQL for the sums of these conversations by model. A key sees only what is its own."""
    sums = ", ".join(f"CAST(sum({name}) AS BIGINT)" for name in SUMS)
    marks = ", ".join("?" for _ in sessions)
    own = "" if key is None else " AND key = ?"
    sql = f"""SELECT session, model, {sums} FROM {schema}usage_by_session
        WHERE session IN ({marks}){own} GROUP BY session, model ORDER BY session, model"""
    return sql, [*sessions, *(() if key is None else (key,))]


def rows(found: Iterable[Sequence[Any]], sums: Iterable[Sequence[Any]]) -> list[SessionRow]:
    models: dict[str, list[UsageRow]] = {}
    for session, *row in sums:
        models.setdefault(session, []).append(UsageRow(*row))
    return [SessionRow(*row, models=tuple(models.get(row[0], ()))) for row in found]
