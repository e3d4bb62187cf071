"""Error texts and exit codes of every command: one sentence, no traceback, documented codes."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import click

from ..model.errors import DragomanError

INTERRUPTED = 130

CODES = {
    0: "success; also if the program that reads the output (`| head`) exits early",
    1: "failure; one sentence on stderr says why and what to do",
    2: "usage error: an unknown option, or a missing or wrong value",
    INTERRUPTED: "ended by Ctrl-C, or by a second signal while answers were still running",
}
"""Exit codes and their meaning, unless a command has its own."""

OWN_CODES: dict[str, dict[str, str]] = {
    "check": {"0": "every upstream answers and every credential works", "1": "a check failed"},
    "conform": {"0": "all laws are kept", "1": "laws are broken", "2": "the suite could not run"},
    "demo": {"0": "shown, or ended by Ctrl-C"},
    "replay": {"1": "with `--diff`: the output differs from the recorded output"},
    "run": {"any": "the agent's own exit code; 128 plus the signal's number if a signal ended the agent"},
    "serve": {"0": "ended by Ctrl-C or SIGTERM, after the running answers finished"},
    "tail": {"0": "ended by Ctrl-C"},
    "translate": {"0": "translated, even if the answer itself is an error: stderr says so"},
}
"""Exit codes that mean something else for one command."""


class CommandGroup(click.Group):
    """A group that reports every expected error in one sentence, without a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        # In the order of `commands.py`. Click's own order is the alphabet's, which begins with `cache`.
        return list(self.commands)

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        # Click keeps the line breaks of a paragraph after a "\b" character. Our docstrings are raw strings,
        # where "\b" is two characters.
        cmd.help = cmd.help.replace("\\b\n", "\b\n") if cmd.help else None
        super().add_command(cmd, name)

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **extra)
        try:
            code = super().main(*args, standalone_mode=False, **extra)
        except (KeyboardInterrupt, click.Abort):
            sys.exit(INTERRUPTED)
        except DragomanError as error:
            code = _show(click.ClickException(error.message))
        except click.ClickException as error:
            code = _show(error)
        except OSError as error:
            code = _show(click.ClickException(_sentence(error)))
            _discard_unwritable_output()
        sys.exit(code if isinstance(code, int) else 0)

    # Click exits with 1 if the reader of a pipe closes it (`dragoman rules | head`). That is not a failure.

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        try:
            return super().make_context(*args, **extra)
        except BrokenPipeError:
            _exit_on_closed_pipe()

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _exit_on_closed_pipe()


def _show(error: click.ClickException) -> int:
    error.show()
    return error.exit_code


def _exit_on_closed_pipe() -> NoReturn:
    """Exit with 0. The interpreter flushes its streams at exit; /dev/null keeps that from failing again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    raise click.exceptions.Exit(0)


def _discard_unwritable_output() -> None:
    """Keep the interpreter from flushing stdout again at exit: that would change the exit code to 120."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _sentence(error: OSError) -> str:
    """The system's error and the file it is about: a full disk, a folder without read permission."""
    what = error.strerror or str(error)
    return f"{error.filename}: {what}" if error.filename else what
