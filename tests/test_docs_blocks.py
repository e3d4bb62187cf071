"""Every code block of the README and the manual is run or parsed. Blocks that cannot be are counted."""

import ast
import contextlib
import io
import itertools
import json
import re
import subprocess
import tomllib
from collections import Counter
from pathlib import Path

import click
import pytest
from support.manual import ROOT, Block, blocks, commands, every_block, pages, script

from dragoman import config
from dragoman.cli import main
from dragoman.cli.run.agents import AGENTS

# Raise this number only on purpose.
NOT_RUN = 4
LANGUAGES = {"console", "sh", "toml", "python", "json", "yaml", "text", "mermaid", ""}
# tests/library/test_library_examples.py runs these and compares their output. The last one has tests, which
# tests/offline/test_pytest_plugin.py runs.
RUN_ELSEWHERE = {
    "README.md", "docs/how-to/agent-loop.md", "docs/reference/library.md", "docs/how-to/test-your-agent.md",
}  # fmt: skip
VERBS = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    assert {block.language for block in every_block()} <= LANGUAGES
    assert Counter(bool(block.not_run) for block in every_block())[True] == NOT_RUN
    assert all(len(block.not_run) > 10 for block in every_block() if block.not_run), "say why"


def test_blocks_that_are_not_checked_hold_no_command() -> None:
    command = re.compile(r"^\s*(\$|dragoman|make|curl|export) ", re.MULTILINE)
    assert [str(block) for block in blocks("text", "mermaid", "") if command.search(block.code)] == []


def test_toml_blocks_are_valid_configs() -> None:
    for block in blocks("toml"):
        if block.not_run:
            tomllib.loads(block.code)
            continue
        named = re.findall(r"env:(\w+)", block.code)
        read = config.loads(block.code, shown=str(block), env=dict.fromkeys(named, "a-key-of-this-test"))
        assert list(read.warnings) == [], str(block)


@pytest.mark.parametrize("block", blocks("python"), ids=str)
def test_python_blocks_run(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = compile(block.code, str(block), "exec")
    if block.page in RUN_ELSEWHERE:
        return
    if block.not_run:
        lines = ast.parse(block.code).body
        imports = [line for line in lines if isinstance(line, ast.Import | ast.ImportFrom)]
        code = compile(ast.Module(imports, []), str(block), "exec")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "example"}
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
        exec(compile(block.given, f"given at {block}", "exec"), names)
        exec(code, names)


def test_json_blocks_parse() -> None:
    for block in blocks("json"):
        json.loads(block.code)


def test_shell_blocks_parse() -> None:
    def complaint(block: Block) -> str:
        words = ["sh", "-n"]
        checked = subprocess.run(words, input=script(block), text=True, capture_output=True, check=False)
        return checked.stderr or ("" if script(block).strip() else "nothing in it can be typed")

    said = {str(block): complaint(block) for block in blocks("console", "sh")}
    assert {name: words for name, words in said.items() if words} == {}


def test_commands_and_their_options_exist() -> None:
    for block in blocks("console", "sh", "yaml"):
        text = script(block) if block.language != "yaml" else "\n".join(re.findall(r"run: (.*)", block.code))
        for arguments in commands(text, "dragoman"):
            parsed(arguments)
        for verb, *_ in commands(text, "make"):
            assert verb in VERBS, str(block)


def parsed(arguments: list[str]) -> None:
    """Parse as the command line does, without running the command."""
    if arguments in ([], ["--version"], ["--help"]):
        return
    top = click.Context(main, info_name="dragoman")
    name, command, rest = main.resolve_command(top, arguments)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        name, command, rest = command.resolve_command(top, rest)
    assert command is not None
    try:
        made = command.make_context(name, rest, parent=top)
        assert made.params.get("client") in (None, *AGENTS) or name == "tail"
    except click.BadParameter as error:
        if "does not exist" not in error.message:  # files that only the reader has
            raise


@pytest.mark.parametrize(
    "arguments", [["serve", "--prot", "1"], ["sevre"], ["translate", "--from", "openai", "--to", "gemini"]]
)
def test_a_wrong_command_is_detected(arguments: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parsed(arguments)


INLINE = [
    (f"{page.relative_to(ROOT)}: {words}", words.split())
    for page in pages()
    for words in re.findall(r"`dragoman ([a-z][^`]*)`", page.read_text().replace("\n", " "))
]


def test_inline_commands_and_options_exist() -> None:
    def unknown(name: str, *rest: str) -> set[str]:
        command = main.commands.get(name)
        while isinstance(command, click.Group) and rest and re.match("[a-z]", rest[0]):
            if "|" in rest[0]:  # several commands at once
                return {*rest[0].split("|")} - command.commands.keys()
            name, *rest = rest  # type: ignore[assignment]
            command = command.commands.get(name)
        if command is None:
            return {name}
        known = {option for param in command.params for option in param.opts}
        mine = itertools.takewhile(lambda word: word not in AGENTS, rest)
        return {word for word in mine if re.match(r"--?[a-z]", word)} - known - {"--help"}

    assert [(where, unknown(*words)) for where, words in INLINE if unknown(*words)] == []


# tests/gateway/test_gateway.py checks that these are all routes.
ROUTES = [
    re.compile(re.sub(r"\\\{.*?\\\}", ".+", re.escape(path)))
    for path in re.findall(r"`(/[^`?]*)`", (ROOT / "docs" / "reference" / "http.md").read_text())
]


def test_gateway_urls_in_blocks_are_served() -> None:
    for page in pages():
        for path in re.findall(r"127\.0\.0\.1:454[56](/[/\w{}:.-]*[\w}])", page.read_text()):
            base = path in ("/v1", "/cursor", "/cursor/v2")
            assert base or any(route.fullmatch(path) for route in ROUTES), f"{page.name}: {path}"


def test_commands_are_found_anywhere_in_a_line() -> None:
    text = 'A=1 dragoman serve & \\\n  eval "$(dragoman env claude)" && x | .venv/bin/dragoman rules # no'
    assert commands(text, "dragoman") == [["serve"], ["env", "claude"], ["rules"]]
