"""The figures as a table: value, ratio to the floor of the same run, target, met or not."""

from __future__ import annotations

import msgspec

from .talks import CODEX, KINDS, PLAIN

Samples = dict[str, dict[str, list[float]]]
"""By row, then by who was measured: one figure per round."""


DIRECT = "direct"
"""Without any gateway: what a delay is counted from."""


class Row(msgspec.Struct, frozen=True):
    """A line of the table."""

    name: str
    title: str
    unit: str
    floor: str = ""
    most: float | None = None
    """Times the floor, or in the row's own unit where there is none."""
    floor_row: str = ""
    """Where the floor stands, if not in this row."""
    group: str = ""
    """The table that it stands in, if not among the targets."""


_NEW, _SEEN = 1.0, 0.7
"""S5's targets, for the bench's own conversation and for those of Claude Code and Codex."""
_AGENTS = {"agent": "a long request of Claude Code", CODEX: "a long request of Codex"}


def _kind(name: str, title: str, new: float | None, seen: float | None, group: str = "") -> tuple[Row, Row]:
    """S5 for conversations of another kind."""
    return (
        Row(f"S5-{name} first", f"{title}, all of it new", "ms", "B", new, group=group),
        Row(f"S5-{name} seen", f"{title}, seen before, one turn more", "ms", "B", seen, group=group),
    )


ROWS = (
    Row("S1", "chat -> chat, not streamed, per request", "µs", "A", 1.6),
    Row("S2", "chat -> chat, streamed, per event", "µs", "A", 2.5),
    Row("S3", "Anthropic client -> chat, streamed, per event", "µs", "B", 1.5),
    Row("S4", "chat client -> Anthropic, streamed, per event", "µs", "B", 1.5, "S3"),
    Row("S5 first", "440 KB, 60 tools, all of it new, per request", "ms", "B", _NEW),
    Row("S5 known tools", "the same, the tools seen before", "ms", "B"),
    Row("S5 seen", "the same, history seen before, one turn more", "ms", "B", _SEEN),
    *(row for name, title in _AGENTS.items() for row in _kind(name, title, _NEW, _SEEN)),
    *(
        row
        for name, kind in KINDS.items()
        if name != PLAIN and name not in _AGENTS
        for row in _kind(name, kind.title, None, None, "others")
    ),
    Row("S6 p50", "1,000 streams: added delay per event, p50", "ms", "A", 1.5),
    Row("S6 p99", "1,000 streams: added delay per event, p99", "ms", "A", 1.5),
    Row("S6 lost", "1,000 streams: lost", "", "", 0),
    Row("S6 memory", "1,000 streams: memory", "MB", "", 150),
    Row("S6 memory per stream", "1,000 streams: memory per stream", "KB", ""),
    Row("S6 cpu", "1,000 streams: CPU per event", "µs", "A"),
    Row("paced", "50 streams, 10 events/s each: CPU per event", "µs", "A"),
    Row("start", "start to first answer", "s", "", 0.8),
    Row("start cpu", "CPU from start to first answer", "s", "A"),
    Row("memory", "idle memory", "MB", "", 70),
)
_WORST = frozenset({"S6 lost", "S6 memory", "S6 memory per stream", "memory"})


def best(samples: Samples, row: str, who: str) -> float | None:
    """The best of the rounds, or the worst for figures that must never be bad."""
    values = samples.get(row, {}).get(who)
    if not values:
        return None
    if row in _WORST:
        return max(values)
    return min(values) - min(samples[row].get(DIRECT, [0.0]))


class Line(msgspec.Struct, frozen=True):
    """A row with its figures."""

    row: Row
    values: dict[str, float]
    ratio: float | None
    met: bool | None


def line(row: Row, samples: Samples, who: str = "Dragoman") -> Line:
    names = [name for name in samples.get(row.name, {}) if name != DIRECT]
    values = {name: value for name in names if (value := best(samples, row.name, name)) is not None}
    own = values.get(who)
    floor = best(samples, row.floor_row or row.name, row.floor) if row.floor else None
    # A floor of zero or less: the machine was too busy to measure delays.
    ratio = own / floor if own is not None and floor and floor > 0 else None
    figure = ratio if row.floor else own
    met = figure <= row.most if figure is not None and row.most is not None else None
    return Line(row, values, ratio, met)


def lines(samples: Samples) -> list[Line]:
    return [line(row, samples) for row in ROWS if row.name in samples]


def text(samples: Samples, names: list[str], failed: dict[str, dict[str, str]]) -> str:
    """The table, for a terminal."""
    head = ["", "", *names, "ratio", "target", ""]
    cells = [head]
    for one in lines(samples):
        row = one.row
        values = [_value(one, name, failed) for name in names]
        ratio = f"{one.ratio:.2f} x {row.floor}" if one.ratio is not None else ""
        cells.append(
            [row.name, f"{row.title}, {row.unit}".rstrip(", "), *values, ratio, _target(row), _met(one)]
        )
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    shown = ["  ".join(_aligned(line, widths)).rstrip() for line in cells]
    notes = [f"{who}, {what}: {why}" for what, ones in failed.items() for who, why in ones.items()]
    return "\n".join([*shown, *notes])


def _aligned(cells: list[str], widths: list[int]) -> list[str]:
    return [
        cell.ljust(width) if number < 2 else cell.rjust(width)
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]


def _value(one: Line, name: str, failed: dict[str, dict[str, str]]) -> str:
    if name in one.values:
        return _number(one.values[name])
    return "failed" if name in failed.get(one.row.name.partition(" ")[0], {}) else "-"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:.3g}"


def _target(row: Row) -> str:
    if row.most is None:
        return ""
    return f"<= {row.most:g} x {row.floor}" if row.floor else f"<= {row.most:g} {row.unit}".rstrip()


def _met(one: Line) -> str:
    return "" if one.met is None else "met" if one.met else "NOT MET"
