"""`dragoman replay --against`: a table of what other models answer to a recorded conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

from ...config.types import Config
from ...model.errors import DragomanError
from ...observe import logs
from ...observe.sessions import MAX_TURNS
from ...offline.compare import ComparedAnswer, Total, compare, recorded_turns, session, total, totals
from ...offline.compare_page import compare_page
from ...offline.library import RecordingEntry
from ...recording.kept_failures import failures_folder
from ...store import ReceiptQuery, Store
from ..printing import aligned
from ..serve.service import load_config
from ..store.operations import with_store

_RECORDED = "(recorded)"
_HEAD = ("turn", "target", "outcome", "valid", "mended", "bad", "in", "out", "cost", "seconds", "calls")
_WORDS = [_HEAD.index(name) for name in ("turn", "target", "outcome", "calls")]


def run(
    of: str, targets: Sequence[str], page: Path | None, config_file: Path | None, say: Callable[[str], None]
) -> None:
    """Ask, and print the table and the totals. `of` is a recording, a folder of them, or a session's id."""
    config = load_config(config_file)
    logs.set_up("error")
    entries = session(Path(of)) if Path(of).exists() else _of_session(of, config_file)
    rows = asyncio.run(_all(compare(config, entries, targets)))
    cells = [_cells(str(row.turn), row.outcome, " ".join(row.calls.names), total([row])) for row in rows]
    cells += [
        _cells("all", f"{one.answers - one.failed} of {one.answers} ok", "", one) for one in totals(rows)
    ]
    for line in aligned([_HEAD, *cells], _WORDS):
        say(line)
    for row in rows:
        if row.error:
            say(f"turn {row.turn}, {row.target}: {row.error}")
    if page is not None:
        try:
            page.write_text(compare_page(rows, f"Models compared on {Path(of).name}"), encoding="utf-8")
        except OSError as error:
            raise DragomanError(f"{page} cannot be written: {error.strerror}") from None
        say(f"Wrote {page}.")


def _of_session(id: str, config_file: Path | None) -> list[RecordingEntry]:
    """The recorded turns of a session of this config's gateway."""

    async def ids(store: Store, config: Config) -> tuple[set[str], list[Path]]:
        receipts = await store.receipts(ReceiptQuery(session=id, limit=MAX_TURNS))
        folders = [config.server.record, failures_folder(config.server.store)]
        return {receipt.id for receipt in receipts}, [one for one in folders if one is not None]

    found, folders = with_store(config_file, ids)
    if not found:
        raise DragomanError(
            f"there is no file or folder {id}, and the store has no session {id!r}: "
            "`dragoman usage --by session` lists those that it has"
        )
    entries = recorded_turns(found, folders)
    if not entries:
        turns = f"{len(found)} turn{'s' if len(found) > 1 else ''}"
        raise DragomanError(
            f"session {id} has {turns}, and no recording of them: record with `server.record` in the config"
        )
    return entries


async def _all(rows: AsyncIterator[ComparedAnswer]) -> list[ComparedAnswer]:
    return [row async for row in rows]


def _cells(turn: str, outcome: str, calls: str, of: Total) -> tuple[str, ...]:
    """One line: an answer, or the sum of all answers of a target."""
    return (
        turn,
        of.target or _RECORDED,
        outcome,
        str(of.valid),
        str(of.mended),
        str(of.bad),
        str(of.input),
        str(of.output),
        "-" if of.cost is None else f"${of.cost:.4f}",
        f"{of.seconds:.2f}",
        calls,
    )
