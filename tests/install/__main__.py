"""Installs Dragoman as users do, into scratch folders, and uses it: `make test-install`. Needs PyPI.

pip install .          into a new environment
uv tool install .      into a tools folder of its own
pip wheel .            and then from the folder of wheels alone, as docs/how-to/company-network.md says
deploy/Containerfile   the commands of its build, one by one, in a copy of what it copies
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path

from lint import lint

ROOT = Path(__file__).parent.parent.parent
COPIED = ("pyproject.toml", "requirements.lock", "README.md", "LICENSE", "src")


def main() -> None:
    ways: dict[str, Callable[[Path], Path]] = {
        "pip": by_pip,
        "uv": by_uv,
        "wheels": without_an_index,
        "image": as_in_the_image,
    }
    for name in sys.argv[1:] or [*ways, "lint"]:
        with tempfile.TemporaryDirectory(prefix=f"dragoman-{name}-") as folder:
            print(f"· {name}", flush=True)
            if name == "lint":
                lint(Path(folder))
            else:
                use(ways[name](Path(folder)), Path(folder) / "home")


def by_pip(folder: Path) -> Path:
    run([sys.executable, "-m", "venv", "--without-pip", "env"], folder)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "env/bin/python")]
    run([*pip, "install", "--quiet", "--disable-pip-version-check", str(source(folder))], folder)
    return folder / "env/bin/dragoman"


def by_uv(folder: Path) -> Path:
    env = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    uv = [sys.executable, str(ROOT / "scripts" / "uv.py")]
    run([*uv, "tool", "install", "--quiet", "--python", sys.executable, str(source(folder))], folder, env)
    return folder / "bin/dragoman"


def without_an_index(folder: Path) -> Path:
    """The two commands of the manual: the first downloads the wheels that the second installs."""
    page = (ROOT / "docs" / "how-to" / "company-network.md").read_text()
    fetch, install = re.findall(
        r"^pip .*$", page.partition("## Install without a package index")[2], re.MULTILINE
    )
    run([sys.executable, "-m", "venv", "env"], folder)
    path = {"PIP_QUIET": "1", "PATH": f"{folder / 'env/bin'}:{os.environ['PATH']}"}
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""}
    run(["sh", "-ec", fetch], source(folder), path)
    run(["sh", "-ec", install], source(folder), {**path, **nowhere})
    return folder / "env/bin/dragoman"


def as_in_the_image(folder: Path) -> Path:
    """Run the commands of the build stage with their paths moved below `folder`."""
    text = (ROOT / "deploy" / "Containerfile").read_text().partition("\nFROM")[2].partition("\nFROM")[0]
    run([sys.executable, "-m", "venv", "build"], folder)
    path = {"PIP_QUIET": "1", "PATH": f"{folder / 'build/bin'}:{os.environ['PATH']}"}
    commands = re.findall(r"^RUN (.*)$", text, re.MULTILINE)
    assert len(commands) == 5, commands
    for command in commands:
        moved = re.sub(r"(?<=[ \"])/(?=opt|wheels)|(?<=echo )/", f"{shlex.quote(str(folder))}/", command)
        run(["sh", "-ec", moved], source(folder), path)
    assert not (folder / "opt/dragoman/bin/pip").exists()
    return folder / "opt/dragoman/bin/dragoman"


def source(folder: Path) -> Path:
    """Copy the project as a download has it. A build must not write into the checkout."""
    copy = folder / "source"
    if not copy.exists():
        copy.mkdir()
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, copy)
    return copy


def use(command: Path, home: Path) -> None:
    """Check that the command exists, finds its data files, and serves."""
    home.mkdir()
    version = out([command, "--version"], home)
    assert re.fullmatch(r"dragoman \d+\.\d+\.\d+\n", version), version
    assert "dragoman demo" in out([command], home)
    assert "tool-alias" in out([command, "demo", "--show"], home)
    out([command, "init", "--upstream", "groq"], home)
    assert "dragoman.toml names groq" in out([command], home)
    cases = out([command, "conform", "--list", "--protocol", "gemini", "--upstream-port", "9"], home)
    assert len(cases.splitlines()) >= 213
    serving = subprocess.Popen(
        [command, "demo", "--port", "0"], cwd=home, env=clean(home), stdout=subprocess.PIPE, text=True
    )
    try:
        assert serving.stdout is not None
        url = serving.stdout.readline().split()[3].rstrip(",")
        for path in ("/healthz", "/inspector", "/v1/models"):
            with urllib.request.urlopen(url + path) as answer:
                assert answer.status == 200
    finally:
        serving.terminate()
        assert serving.wait(20) == 0
    print(f"  {version.strip()}: answers, lists, serves", flush=True)


def out(command: list[str | Path], home: Path) -> str:
    return subprocess.run(
        command, cwd=home, env=clean(home), capture_output=True, text=True, check=True
    ).stdout


def clean(home: Path) -> dict[str, str]:
    """An environment without the variables of the checkout."""
    return {"HOME": str(home), "PATH": "/usr/bin:/bin"}


def run(command: list[str], folder: Path, env: dict[str, str] | None = None) -> None:
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run(command, cwd=folder, env={**kept, **(env or {})}, check=True)


if __name__ == "__main__":
    main()
