"""The manual matches the code: generated pages, commands, options, headers, links and paths."""

import ast
import importlib.util
import re
import tomllib
import typing
from html import unescape
from typing import Any

import click
import pytest
from click.testing import CliRunner
from support.manual import ROOT, blocks, commands
from support.manual import script as shell

from dragoman.cli import main
from dragoman.cli.run.agents import AGENTS
from dragoman.config.providers import providers
from dragoman.model import events, messages
from dragoman.protocols.common.unsupported import HARMLESS


def script(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_up_to_date() -> None:
    folder, made = ROOT / "docs" / "reference", script("reference").PAGES
    stale = [page for page, make in made.items() if (folder / page).read_text() != make()]
    assert stale == [], "run `python scripts/reference.py`"


def test_every_command_is_documented() -> None:
    manual = "".join(path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    assert [
        command
        for command in main.commands
        if f"dragoman {command}" not in manual and f"make {command}" not in manual
    ] == []


def test_the_picture_matches_the_demo() -> None:
    picture = script("picture")
    assert picture.PICTURE.read_text() == picture.picture(), "run `python scripts/picture.py`"
    printed = CliRunner().invoke(main, ["demo", "--show"]).output
    drawn = [unescape(words) for words in re.findall(r'class="rule">(.*?)<', picture.picture())]
    assert len(drawn) == 2
    for rule, path, before, _, after in map(str.split, drawn):
        assert f"mended    {rule} at {path}: {before} -> {after}" in printed


def test_the_two_commands_of_the_readme_are_make_targets() -> None:
    readme = [block for block in blocks("console") if block.page == "README.md"]
    assert commands(shell(readme[0]), "make") == [["demo"], ["test"]]
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^demo: \$\(READY\).*\n\t@\$\(BIN\)/dragoman demo ", makefile, re.MULTILINE)
    assert re.search(r"^test: \$\(READY\).*\n(?:\t.*\n)*\t@\$\(BIN\)/pytest ", makefile, re.MULTILINE)


def test_the_readme_counts_the_providers_and_the_agents() -> None:
    readme = (ROOT / "README.md").read_text()
    assert re.findall(r"\[(\d+) providers\]", readme) == [str(len(providers()))]
    assert len(AGENTS) == 10, "the README says ten"
    assert "[ten agents]" in readme


def test_every_event_and_part_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "events.md").read_text()
    kinds = [*typing.get_args(events.Event), *typing.get_args(messages.Part)]
    assert [kind.__name__ for kind in kinds if f"\n## {kind.__name__}\n" not in page] == []


def test_every_option_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    inner = {
        f"# {group} {name}": command
        for group, commands in main.commands.items()
        if isinstance(commands, click.Group)
        for name, command in commands.commands.items()
    }
    outer = {f" {name}": command for name, command in main.commands.items()}
    for head, command in {**outer, **inner}.items():
        part = page.partition(f"\n##{head}\n")[2].partition("\n##")[0]
        wanted = [option for param in command.params for option in param.opts if option.startswith("--")]
        assert [option for option in wanted if option not in part] == []


HEADER = re.compile(
    r"(?:x|anthropic|retry|cache|api|request|content|www|access|user|set)(?:-[a-z]+)+"
    r"|authorization|accept|allow|host|origin|traceparent|tracestate"
)


def header_names() -> set[str]:
    """Strings that look like header names, in all modules that speak HTTP."""
    package = ROOT / "src" / "dragoman"
    files = [*(package / "gateway").rglob("*.py"), package / "routing" / "retry_after.py"]
    files += (package / "protocols").glob("*/facts.py")
    trees = [ast.parse(path.read_text()) for path in files]
    texts = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return {text for text in texts if isinstance(text, str) and HEADER.fullmatch(text)}


def test_every_header_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "http.md").read_text()
    names = header_names()
    assert {"x-dragoman-exchange", "x-dragoman-warnings", "retry-after", "anthropic-beta"} <= names
    assert [name for name in sorted(names) if name not in page] == []


def test_every_setting_that_is_dropped_without_a_warning_is_documented() -> None:
    page = (ROOT / "docs" / "reference" / "http.md").read_text()
    listed = page.partition("### What is dropped without a warning")[2].partition("\n## ")[0]
    translated = {"mcp_servers"}  # they become tools
    respelled = {"safety_settings"}
    assert [name for name in sorted(HARMLESS - translated - respelled) if f"`{name}`" not in listed] == []


def test_every_page_is_in_the_navigation() -> None:
    def listed(entry: Any) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        return [
            path for inner in (entry.values() if isinstance(entry, dict) else entry) for path in listed(inner)
        ]

    shown = listed(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"])
    pages = [str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(shown) == sorted(pages)


def test_links_between_files_of_the_checkout_exist() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


PATH = re.compile(r"`([\w./<>-]+(?:/|\.(?:py|toml|md|svg)))`")
GENERATED = {"site/", "dragoman.toml"}


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_for_contributors_exists(page: str) -> None:
    """A path starts at the root, at the package, or at a protocol's folder. `<name>` is a protocol."""
    files = [path for path in ROOT.rglob("*") if not {".venv", ".git", ".bench"} & {*path.parts}]
    known = [f"/{path.relative_to(ROOT)}{'/' if path.is_dir() else ''}" for path in files]

    def exists(named: str) -> bool:
        spelled = re.sub(r"<\w+>", "anthropic", named)
        return any(path.endswith(f"/{spelled}") for path in known)

    named = set(PATH.findall((ROOT / page).read_text())) - GENERATED
    assert len(named) > 20
    assert [path for path in sorted(named) if not exists(path)] == []
