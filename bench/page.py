"""`python -m bench.page`: tables and plots of README.md and docs/explanation/speed.md, from the results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from . import plot
from .growth import Study
from .processes import ROOT

RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "explanation" / "speed.md"
README = ROOT / "README.md"
PLOTS = ROOT / "docs" / "explanation" / "speed"
_PLAIN = frozenset({"turns", "workers"})
_BARS = ("S1", "S2", "S3", "S4", "S5 first", "S5 seen")


def results(name: str) -> Any:
    return msgspec.json.decode((RESULTS / f"{name}.json").read_bytes())


def grouped(group: str) -> list[Any]:
    """The rows of one group."""
    return [row for row in results("latest")["rows"] if row.get("group", "") == group]


def ours(group: str = "") -> str:
    """The table of Dragoman, the floors and the targets."""
    lines = ["| | | Dragoman | floor | ratio | target | |", "| --- | --- | --: | --: | --: | --: | --- |"]
    rows = grouped(group)
    if not rows:
        return "Not measured yet."
    floors = {row["name"]: row["values"] for row in rows}
    for row in rows:
        if "Dragoman" not in row["values"]:
            continue
        floor = floors["S3" if row["name"] == "S4" else row["name"]].get(row["floor"] or "A")
        of = f" x {row['floor']}" if row["floor"] else f" {row['unit']}".rstrip()
        cells = [
            row["name"],
            f"{row['title'].replace('->', '→')}, {row['unit']}".rstrip(", "),
            number(row["values"]["Dragoman"]),
            number(floor) if floor is not None else "",
            f"{row['ratio']:.2f}{of}" if row["ratio"] else "",
            "" if row["target"] is None else f"≤ {row['target']:g}{of}",
            {True: "met", False: "**not met**", None: ""}[row["met"]],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def peers() -> str:
    """The table of the other gateways, all from the same run."""
    found = results("peers")
    names = all_names(found["rows"])
    lines = [f"| | {' | '.join(names)} |", f"| --- |{' --: |' * len(names)}"]
    for row in found["rows"]:
        values = [number(row["values"][name]) if name in row["values"] else "-" for name in names]
        unit = f", {row['unit']}" if row["unit"] else ""
        lines.append(f"| {row['name']}{unit} | {' | '.join(values)} |")
    said = [
        f"\n{who}, {what}: {why[:160]}" for what, ones in found["failed"].items() for who, why in ones.items()
    ]
    return "\n".join([*lines, *said])


def all_names(rows: Iterable[Any]) -> list[str]:
    """The names in order: Dragoman, the floors, the others."""
    return list(dict.fromkeys(["Dragoman", "A", "B", *(name for row in rows for name in row["values"])]))


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:.3g}"


def plots() -> Iterator[tuple[str, str]]:
    """File name and SVG."""
    for study in msgspec.convert(results("growth"), list[Study]):
        lines = [(curve.name, curve.points) for curve in study.curves]
        yield study.name, plot.curves(study.title, study.x, study.y, lines, log=study.name not in _PLAIN)
    rows = {row["name"]: row for row in results("peers")["rows"]}
    names = all_names(rows.values())
    scale = {"ms": 1000.0}
    groups = [
        (
            name,
            [
                (who, value * scale.get(rows[name]["unit"], 1.0))
                for who, value in rows[name]["values"].items()
            ],
        )
        for name in _BARS
        if name in rows
    ]
    title = "CPU per request (S1, S5) or event (S2 to S4), less is better"
    yield "peers", plot.bars(title, "µs", groups, names)


def _idle_memory(name: str) -> dict[str, float]:
    return next(row["values"] for row in results(name)["rows"] if row["name"] == "memory")


_COMPARED = ("Dragoman", "LiteLLM", "claude-code-router", "Portkey", "TensorZero")


def compare() -> str:
    """The README's table: one line per gateway."""
    faults = results("faults")
    memory = _idle_memory("peers") | {"Dragoman": _idle_memory("latest")["Dragoman"]}
    right = {
        (tally["client"], tally["gateway"]): f"{tally['right']} of {tally['of']}"
        for tally in faults
        if tally["upstream"] == "openai-chat"
    }
    versions = {tally["gateway"]: tally["version"] for tally in faults}
    lines = [
        "| gateway | right, Chat client | right, Anthropic client | idle memory |",
        "| --- | --: | --: | --: |",
    ]
    for name in _COMPARED:
        cells = [
            f"{name} {versions[name]}".rstrip(),
            right.get(("openai-chat", name), "-"),
            right.get(("anthropic", name), "-"),
            f"{memory[name]:.0f} MB",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def page() -> str:
    """The page with current tables."""
    return _filled(PAGE, {"ours": ours(), "others": ours("others"), "peers": peers()})


def readme() -> str:
    """The README with current tables."""
    return _filled(README, {"compare": compare()})


def _filled(path: Path, blocks: dict[str, str]) -> str:
    text = path.read_text()
    for name, table in blocks.items():
        block = f"<!-- {name} -->\n\n{table}\n\n<!-- end -->"
        text, found = re.subn(rf"<!-- {name} -->.*?<!-- end -->", lambda _, b=block: b, text, flags=re.DOTALL)
        assert found == 1, f"{path.name} has no place for {name}"
    return text


if __name__ == "__main__":
    PLOTS.mkdir(exist_ok=True)
    PAGE.write_text(page())
    README.write_text(readme())
    for name, svg in plots():
        (PLOTS / f"{name}.svg").write_text(svg)
