"""SQL conditions for a `ReceiptQuery`: the part that every engine shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .types import ReceiptQuery

_EQUAL = ("client", "profile", "outcome", "status", "key", "team", "upstream", "session")


class SqlDialect(NamedTuple):
    """How an engine says what standard SQL has no word for. `?` stands for a value."""

    contains: str
    """A column, for which `{}` stands, contains a text."""
    matches: str
    """A column matches the pattern that `pattern` makes."""
    pattern: Callable[[str], str]
    """The engine's pattern for a glob."""


def conditions(query: ReceiptQuery, dialect: SqlDialect) -> tuple[str, list[Any]]:
    """The condition of a query, and its values."""
    texts: list[str] = []
    values: list[Any] = []
    for text, bound in _each(query, dialect):
        texts.append(text)
        values.extend(bound)
    return " AND ".join(texts), values


def _each(query: ReceiptQuery, dialect: SqlDialect) -> Iterator[tuple[str, tuple[Any, ...]]]:
    yield from _time(query)
    for column in _EQUAL:
        if (wanted := getattr(query, column)) is not None:
            yield f"{column} = ?", (wanted,)
    if query.model is not None:
        yield f"model {dialect.matches} ?", (dialect.pattern(query.model),)
    if query.rule is not None:
        yield dialect.contains.format("rules"), (f" {query.rule} ",)
    if query.slow is not None:
        yield "seconds >= ?", (query.slow,)
    if query.failed:
        yield "failed > 0", ()
    if query.mended:
        yield "mended > 0", ()
    for word in query.words:
        yield dialect.contains.format("words"), (word,)


def _time(query: ReceiptQuery) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """One upper bound only: SQLite searches its index by the first that it finds.

    PostgreSQL skips the partitions of later days by it. By a comparison of pairs it would not.
    """
    yield "at >= ?", (query.since,)
    if query.after is None or query.before <= query.after[0]:
        yield "at < ?", (query.before,)
    else:
        yield "at <= ?", query.after[:1]
    if query.after is not None:
        yield "(at, id) < (?, ?)", query.after
