"""The pytest plugin, as the example project uses it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.manual import blocks
from support.scripted_upstream import in_background

EXAMPLE = Path(__file__).parents[2] / "examples" / "weather-agent"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "project"


def run(project: Path, *arguments: str, **env: str) -> tuple[int, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments],
        cwd=project,
        env={**clean, **env},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def changed(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_example_passes(project: Path) -> None:
    code, output = run(project)
    assert code == 0, output
    assert "4 passed" in output


def test_the_manuals_tests_pass(project: Path) -> None:
    (block,) = [block for block in blocks("python") if block.page == "docs/how-to/test-your-agent.md"]
    (project / "tests" / "test_weather_agent.py").write_text(block.code)
    code, output = run(project)
    assert code == 0, output
    assert "2 passed" in output


def test_a_changed_agent_fails_with_the_first_difference(project: Path) -> None:
    changed(project / "weather_agent.py", "sunny for", "rainy for")
    code, output = run(project, "-k", "looks_up")
    assert code == 1
    assert re.search(r"first difference is at messages\[2\]\.parts\[0\]\.parts\[0\]\.text", output)
    assert "'Rome: sunny for 3 days', the request has 'Rome: rainy for 3 days'" in output


def test_a_miss_that_the_agent_hides_still_fails_the_test(project: Path) -> None:
    changed(project / "weather_agent.py", "question}", 'question + "!"}')
    test = project / "tests" / "test_weather_agent.py"
    changed(test, 'assert "Rome: sunny for 3 days" in answer(QUESTION)', "hidden()")
    test.write_text(
        test.read_text()
        + "\n\ndef hidden():\n    with pytest.raises(anthropic.APIError):\n        answer(QUESTION)\n"
    )
    code, output = run(project, "-k", "looks_up")
    assert code == 1
    assert "1 error" in output
    assert "no recording in" in output


@pytest.mark.parametrize("by", ["option", "marker"])
def test_what_is_missing_is_recorded_when_asked(project: Path, by: str, tmp_path: Path) -> None:
    changed(project / "weather_agent.py", "sunny for", "rainy for")
    test = project / "tests" / "test_weather_agent.py"
    changed(test, "Rome: sunny", "Rome: rainy")
    arguments = ("--dragoman-record",)
    if by == "marker":
        changed(
            test, "def test_the_agent_looks", "@pytest.mark.dragoman(record=True)\ndef test_the_agent_looks"
        )
        arguments = ()
    config = tmp_path / "dragoman.toml"
    recordings = project / "tests" / "recordings"
    before = len(list(recordings.iterdir()))
    with in_background() as upstream:
        config.write_text(
            f'[upstreams.up]\nprotocol = "openai-chat"\nbase_url = "{upstream.url}"\ncredential = "none"\n'
            '[[routes]]\nmatch = "*"\nto = "up/demo"\n'
        )
        code, output = run(project, "-k", "looks_up", *arguments, DRAGOMAN_CONFIG=str(config))
        assert code == 0, output
        assert len(upstream.seen) == 1, "the first request has its recording"
    assert len(list(recordings.iterdir())) == before + 1
    if by == "option":
        code, output = run(project)
        assert code == 0, output


def test_a_misspelt_marker_is_reported(project: Path) -> None:
    changed(project / "tests" / "test_weather_agent.py", 'fault="cut@3"', 'faults="cut@3"')
    code, output = run(project, "-k", "cut")
    assert code != 0
    assert "pytest.mark.dragoman takes fault, record, recordings, not ['faults']" in output


def test_the_plugin_does_not_slow_other_projects_down() -> None:
    """pytest imports it at every start, wherever Dragoman is installed."""
    code = (
        "import sys, dragoman.offline.pytest_plugin\n"
        "print([name for name in sys.modules if name.startswith('dragoman.gateway')])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
