"""The manual says what the code does."""

import importlib.util
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from dragoman.cli import main

ROOT = Path(__file__).parent.parent


def reference() -> object:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "scripts" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = ["order.md", "rules.md", "protocols.md", "profiles.md", "cursor-tools.md", "laws.md"]


@pytest.mark.parametrize("page", PAGES)
def test_generated_pages_are_up_to_date(page: str) -> None:
    written = (ROOT / "docs" / "reference" / page).read_text()
    assert written == reference().PAGES[page](), "run `python scripts/reference.py`"


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_is_documented(command: str) -> None:
    manual = "".join(path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    assert f"dragoman {command}" in manual or f"make {command}" in manual


def test_the_readme_shows_what_the_demo_prints() -> None:
    printed = CliRunner().invoke(main, ["demo", "--show"]).output
    readme = (ROOT / "README.md").read_text()
    shown = re.findall(r"^(?:upstream|mended)  +(.*)$", readme, re.MULTILINE)
    assert len(shown) == 6
    assert all(line in printed for line in shown)


def test_links_between_files_of_the_checkout_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"
