"""The files of a release: workflows run what exists, and `scripts/release.py` fills in the formula."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from dragoman import __version__

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def release(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "release.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


def steps(path: Path) -> list[dict[str, Any]]:
    jobs = yaml.safe_load(path.read_text())["jobs"].values()
    return [step for job in jobs for step in job.get("steps", ())]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_runs_only_what_exists(path: Path) -> None:
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = "\n".join(step.get("run", "") for step in steps(path))
    for line in re.findall(r"^make (.+)$", commands, re.MULTILINE):
        assert set(line.split()) <= verbs
    for script in re.findall(r"(?:scripts|deploy|\.ci)/[\w./-]+", commands):
        assert (ROOT / script).exists(), script
    # A tag of somebody else's repository can be moved. A commit cannot.
    used = [step["uses"] for step in steps(path) if "uses" in step]
    assert [name for name in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", name)] == []
    versions = re.findall(r"^ +(?:- )?uses: \S+@[0-9a-f]{40} # v[\d.]+$", path.read_text(), re.MULTILINE)
    assert len(versions) == len(used)


def test_every_supported_python_is_tested() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]
    for job in ("linux", "macos-and-windows"):
        assert jobs[job]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert set(jobs["macos-and-windows"]["strategy"]["matrix"]["os"]) == {"macos-latest", "windows-latest"}


def test_publishing_needs_no_stored_token() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert set(re.findall(r"secrets\.(\w+)", text)) == {"GITHUB_TOKEN"}
    assert yaml.safe_load(text)["jobs"]["publish"]["permissions"] == {"id-token": "write"}


def test_version_and_formula(tmp_path: Path) -> None:
    assert release("version").stdout.strip() == __version__
    archive = tmp_path / f"dragoman-{__version__}.tar.gz"
    archive.write_bytes(b"an archive")
    made = release("formula", str(archive), GITHUB_REPOSITORY="me/dragoman").stdout
    assert re.findall(r"@[A-Z0-9]+@", made) == []
    assert f'url "https://github.com/me/dragoman/releases/download/v{__version__}/{archive.name}"' in made
    assert re.search(r'sha256 "[0-9a-f]{64}"', made)


def test_notes_need_a_section_for_the_version() -> None:
    result = release("notes")
    if f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text():
        assert result.stdout.strip()
    else:
        assert f"CHANGELOG.md has no section [{__version__}]" in result.stderr
