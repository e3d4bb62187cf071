"""The wheel and the sdist hold the needed files and nothing else. Built as pip builds them, offline."""

import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "dragoman"
HEAVY = {
    "azure-identity",
    "botocore",
    "google-auth[requests]",
    "opentelemetry-exporter-otlp-proto-http",
    "opentelemetry-sdk",
    "psycopg-pool",
    "psycopg[binary]",
    "redis[hiredis]",
}


def build(kind: str, source: Path, target: Path) -> Path:
    """Call the build backend as `pip wheel` and `python -m build` do."""
    code = f"import sys; from hatchling.build import build_{kind} as build; print(build(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(target)]
    made = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return target / made.stdout.split()[-1]


def files_of_the_package() -> set[str]:
    found = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {f"dragoman/{path.relative_to(PACKAGE).as_posix()}" for path in found}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build("wheel", ROOT, tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build("sdist", ROOT, folder)) as archive:
        archive.extractall(folder, filter="data")
    [top] = [path for path in folder.iterdir() if path.is_dir()]
    return top


def split(wheel: zipfile.ZipFile) -> tuple[set[str], dict[str, str]]:
    """The package's files, and its metadata by name."""
    names = [name for name in wheel.namelist() if not name.endswith("/")]
    about = {name.partition("/")[2]: wheel.read(name).decode() for name in names if ".dist-info/" in name}
    return {name for name in names if ".dist-info/" not in name}, about


def test_the_wheel_is_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    files, about = split(wheel)
    assert files == files_of_the_package()
    assert set(about) == {
        "METADATA",
        "WHEEL",
        "RECORD",
        "entry_points.txt",
        "licenses/LICENSE",
        "licenses/NOTICE",
    }


def test_the_wheel_has_the_data_files(wheel: zipfile.ZipFile) -> None:
    files, _ = split(wheel)
    assert {
        "dragoman/py.typed",
        "dragoman/config/providers.toml",
        "dragoman/observe/inspector/index.html",
        "dragoman/prices/table.json",
    } <= files
    assert sum(name.startswith("dragoman/conform/cases/") for name in files) >= 213
    assert {Path(name).suffix for name in files} == {
        ".py",
        ".toml",
        ".json",
        ".html",
        ".css",
        ".js",
        ".svg",
        ".typed",
    }


def test_the_wheel_has_the_command_and_only_light_dependencies(wheel: zipfile.ZipFile) -> None:
    _, about = split(wheel)
    assert "dragoman = dragoman.cli:main" in about["entry_points.txt"]
    metadata = Parser().parsestr(about["METADATA"])
    needed = metadata.get_all("Requires-Dist") or []
    always = {line.partition(">")[0] for line in needed if "extra ==" not in line}
    light = {
        "aiohttp", "backports-zstd", "brotli", "click", "jsonschema-rs", "msgspec", "prometheus-client",
        "pycurl", "uvloop",
    }  # fmt: skip
    assert always == light
    assert {line.partition(">")[0] for line in needed if "extra ==" in line} == HEAVY
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata.get_payload().startswith("# Dragoman")


def test_the_sdist_has_the_project_without_build_output(sdist: Path) -> None:
    top = {path.name for path in sdist.iterdir()}
    wanted = {"src", "tests", "bench", "docs", "scripts", "deploy", "Makefile", "README.md", "LICENSE"}
    assert wanted <= top
    assert {"pyproject.toml", "requirements.lock", "requirements-browser.lock", "zensical.toml"} <= top
    made = {".venv", ".cache", ".git", "site", "dist", "__pycache__", ".hypothesis", ".pytest_cache"}
    assert [path for path in sdist.rglob("*") if path.name in made or path.suffix == ".pyc"] == []


def test_the_sdist_builds_the_same_wheel(sdist: Path, wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    again = zipfile.ZipFile(build("wheel", sdist, tmp_path))
    assert sorted(again.namelist()) == sorted(wheel.namelist())
    assert [name for name in wheel.namelist() if again.read(name) != wheel.read(name)] == []
