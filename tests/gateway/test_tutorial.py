"""The tutorial's commands, run unchanged, give the output shown there."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.manual import Block, every_block
from support.processes import dragoman

from bench.processes import free_port

STEPS = [block for block in every_block() if block.page == "docs/tutorial.md"]
ELSEWHERE = re.compile(r"make demo|npm |OPENROUTER")  # programs that a test does not have
FILES = {"json": "ask.json", "toml": "dragoman.toml"}


class Reader:
    """A reader of the tutorial: writes the files and runs the commands, on two free ports."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {"4545": str(free_port()), "4546": str(free_port())}
        self.typed = 0
        command = folder / "bin" / "dragoman"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m dragoman "$@"\n')
        command.chmod(0o755)
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        self._env = {**kept, "HOME": str(folder), "PATH": f"{command.parent}:{kept['PATH']}"}

    def here(self, text: str) -> str:
        return re.sub("4545|4546", lambda found: self.ports[found[0]], text)

    def write(self, block: Block) -> None:
        (self.folder / FILES[block.language]).write_text(self.here(block.code))

    def type(self, line: str, shown: str) -> None:
        done = subprocess.run(
            ["sh", "-c", self.here(line)],
            cwd=self.folder,
            env=self._env,
            capture_output=True,
            text=True,
            check=True,
        )
        assert looks_like(self.here(shown), done.stdout), f"{line}\n{done.stdout}"
        self.typed += 1


def looks_like(shown: str, got: str) -> bool:
    """Does `got` contain everything shown, in order? `…` stands for any text."""
    pattern = ".*?".join(map(re.escape, shown.rstrip("\n").split("…")))
    return re.match(pattern, got, re.DOTALL) is not None


def lines(block: Block) -> list[tuple[str, str]]:
    """Each command with the output shown below it."""
    if block.language != "console" or ELSEWHERE.search(block.code):
        return []
    parts = re.split(r"^\$ (.*)\n", block.code, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.skipif(shutil.which("curl") is None, reason="the tutorial is typed with curl")
def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    with ExitStack() as terminals:
        terminals.enter_context(dragoman(tmp_path, "demo", "--port", reader.ports["4545"])).ready()
        for block in STEPS:
            if block.language in FILES and "openrouter" not in block.code:
                reader.write(block)
            for line, shown in lines(block):
                if line == "dragoman serve":
                    terminals.enter_context(dragoman(tmp_path, "serve")).ready()
                else:
                    reader.type(line, shown)
    assert reader.typed == 12
