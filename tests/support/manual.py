"""The code blocks of the README and the manual, and their commands."""

import itertools
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"(?:<!-- (?P<mark>given|not run):(?P<marked>.*?)-->\n+)?"
    r"^(?P<indent> *)```(?P<language>\S*)\n(?P<code>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
_BETWEEN = set("();<>|&")
_INSIDE = re.compile(r"\$\((.*?)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block. A comment before it may give its context, or the reason why it cannot run."""

    page: str
    line: int
    language: str
    code: str
    given: str = ""
    not_run: str = ""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(*languages: str) -> list[Block]:
    """The blocks in one of these languages."""
    return [block for page in pages() for block in _blocks(page) if block.language in languages]


def every_block() -> list[Block]:
    return [block for page in pages() for block in _blocks(page)]


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for found in _BLOCK.finditer(text):
        marks = {found["mark"]: found["marked"].strip()} if found["mark"] else {}
        yield Block(
            page=str(page.relative_to(ROOT)),
            line=text.count("\n", 0, found.start("indent")) + 1,
            language=found["language"],
            code=found["code"],
            given=marks.get("given", ""),
            not_run=marks.get("not run", ""),
        )


def script(block: Block) -> str:
    """The input of a block: in `console` the lines after a prompt, in `sh` all lines."""
    if block.language == "sh":
        return block.code
    typed = re.findall(r"^\s*\$ ((?:.*\\\n)*.*)$", block.code, re.MULTILINE)
    return "\n".join(typed) + "\n"


def commands(text: str, program: str) -> list[list[str]]:
    """The arguments of each call of `program` in a shell script."""
    found: list[list[str]] = []
    for line in text.replace("\\\n", " ").splitlines():
        for words in _simple_commands(line):
            called = [*itertools.dropwhile(re.compile(r"[A-Za-z_]+=").match, words)]  # A=1 program
            if called and Path(called[0]).name == program:
                found.append(called[1:])
            for inner in _INSIDE.findall(" ".join(words)):
                found += commands(inner, program)
    return found


def _simple_commands(line: str) -> list[list[str]]:
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    simple: list[list[str]] = [[]]
    for word in words:
        if set(word) <= _BETWEEN:
            simple.append([])
        else:
            simple[-1].append(word)
    return simple
