"""The comparison of models as a web page: one HTML file without scripts that loads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from .compare import ComparedAnswer, Total, totals

_STYLE = """
:root { color-scheme: light dark; --ink: #16211f; --soft: #56635f; --line: #d5dcda; }
:root { --good: #0f6e63; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ecea; --soft: #9fada9; --line: #2b3735; --good: #5fd3c4; --bad: #ff8a80; }
}
body { font: 14px/1.45 system-ui, sans-serif; color: var(--ink); }
body { max-width: 1200px; margin: 0 auto; padding: 16px; }
h1 { font-size: 20px; } h2 { font-size: 15px; margin: 24px 0 6px; }
p { color: var(--soft); margin: 4px 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 5px 12px 5px 0; vertical-align: top; }
th, td { border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 500; white-space: nowrap; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.good { color: var(--good); } .bad { color: var(--bad); }
"""
_RECORDED = "the recording"


def compare_page(rows: Sequence[ComparedAnswer], title: str) -> str:
    """The page: the sums of each target, then every turn with its answers side by side."""
    turns = dict.fromkeys(row.turn for row in rows)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)} · Dragoman</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1>",
        "<p>Every turn was asked with the recorded history. Calls are judged by the schemas of the tools: "
        "no model judges.</p>",
        _table(_HEAD, (_sums(total) for total in totals(rows))),
        *(part for turn in turns for part in _turn(turn, [row for row in rows if row.turn == turn])),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


_HEAD = ("target", "answers", "valid", "mended", "bad", "tokens in", "tokens out", "cost", "seconds")
_TURN_HEAD = ("target", "outcome", "calls", "valid", "mended", "bad", "tokens out", "cost", "seconds")
_WORDS = frozenset({"target", "answers", "outcome", "calls"})


def _sums(total: Total) -> Iterable[tuple[str, str]]:
    good = total.answers - total.failed
    return (
        (total.target or _RECORDED, ""),
        (f"{good:,} of {total.answers:,} ok", "bad" if total.failed else ""),
        (f"{total.valid:,}", ""),
        (f"{total.mended:,}", ""),
        (f"{total.bad:,}", "bad" if total.bad else ""),
        (f"{total.input:,}", ""),
        (f"{total.output:,}", ""),
        (_money(total.cost), ""),
        (f"{total.seconds:.2f}", ""),
    )


def _turn(turn: int, rows: Sequence[ComparedAnswer]) -> Iterable[str]:
    yield f"<h2>Turn {turn}</h2>"
    yield _table(_TURN_HEAD, map(_answer, rows))
    for row in rows:
        if row.error:
            yield f'<p class="bad">{escape(row.target or _RECORDED)}: {escape(row.error)}</p>'


def _answer(row: ComparedAnswer) -> Iterable[tuple[str, str]]:
    calls = row.calls
    return (
        (row.target or _RECORDED, ""),
        (row.outcome, "" if row.outcome == "ok" else "bad"),
        (", ".join(calls.names) or "-", ""),
        (f"{calls.valid:,}", "good" if calls.valid else ""),
        (f"{calls.mended:,}", ""),
        (f"{calls.bad:,}", "bad" if calls.bad else ""),
        (f"{row.usage.output or 0:,}", ""),
        (_money(row.cost), ""),
        (f"{row.seconds:.2f}", ""),
    )


def _money(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:.4f}"


def _table(head: Sequence[str], rows: Iterable[Iterable[tuple[str, str]]]) -> str:
    """A table from cells with their classes."""
    numbers = ["" if name in _WORDS else "number" for name in head]
    titles = "".join(_cell("th", name, kind) for name, kind in zip(head, numbers, strict=True))
    lines = (
        "".join(
            _cell("td", text, f"{mark} {kind}".strip())
            for (text, mark), kind in zip(row, numbers, strict=True)
        )
        for row in rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(tag: str, text: str, kind: str) -> str:
    marked = f' class="{kind}"' if kind else ""
    return f"<{tag}{marked}>{escape(text)}</{tag}>"
