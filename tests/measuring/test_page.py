"""The speed page, the README and the plots show the measured results."""

import re
from pathlib import Path
from typing import cast
from xml.etree import ElementTree

import msgspec
import pytest

from bench import page, plot
from bench.__main__ import Measurement, report
from bench.session import Bench


def test_the_page_shows_the_results() -> None:
    assert page.PAGE.read_text() == page.page(), "run `python -m bench.page`"


def test_the_readme_shows_the_results() -> None:
    assert page.README.read_text() == page.readme(), "run `python -m bench.page`"


def test_every_page_gives_the_same_idle_memory() -> None:
    row = next(row for row in page.results("latest")["rows"] if row["name"] == "memory")
    measured = f"{row['values']['Dragoman']:.0f} MB"
    for path in ("docs/how-to/serve.md", "deploy/helm/dragoman/values.yaml"):
        text = (page.ROOT / path).read_text()
        assert re.findall(r"idle process uses (\d+ MB)", text) == [measured], path


def test_the_plots_show_the_results() -> None:
    for name, svg in page.plots():
        assert (page.PLOTS / f"{name}.svg").read_text() == svg, "run `python -m bench.page`"
        assert f"(speed/{name}.svg)" in page.PAGE.read_text()


def test_other_kinds_of_conversations_have_their_own_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    rounds = {"S1": {"Dragoman": [3.0, 2.0], "A": [2.0]}, "S5-prose seen": {"Dragoman": [1.0], "B": [2.0]}}

    def measured(*names: str) -> None:
        result = Measurement(cast(Bench, None), ())
        result.samples = {name: rounds[name] for name in names}
        (tmp_path / "latest.json").write_bytes(msgspec.json.encode(report(result, {})))

    measured("S1")
    assert page.ours("others") == "Not measured yet."
    measured("S1", "S5-prose seen")
    assert "| 1 | 2 | 0.50 x B |  |  |" in page.ours("others")
    assert "prose" not in page.ours()


def test_a_curve_goes_through_its_points() -> None:
    svg = ElementTree.fromstring(
        plot.curves("t", "x", "y", [("one", [(1, 10), (10, 100), (100, 10)])], log=True)
    )
    line = svg.find("{http://www.w3.org/2000/svg}polyline")
    assert line is not None
    points = [tuple(float(number) for number in pair.split(",")) for pair in line.attrib["points"].split()]
    assert points[0][0] < points[1][0] < points[2][0]
    assert points[1][1] < points[0][1] == points[2][1]  # y grows downward


def test_bars_have_the_height_of_their_values() -> None:
    svg = ElementTree.fromstring(plot.bars("t", "ms", [("S1", [("a", 10), ("b", 1000)])], ["a", "b"]))
    heights = [float(bar.attrib["height"]) for bar in svg.findall("{http://www.w3.org/2000/svg}rect")]
    assert heights[1] == pytest.approx(3 * heights[0], rel=0.01)  # from 1: one power of ten, and three
