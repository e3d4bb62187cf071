"""How every command behaves: mistakes in one sentence, no traceback, and codes that scripts can use."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import click

from ..model.errors import DragomanError

INTERRUPTED = 130

CODES = {
    0: "done; also when whoever read the output has left",
    1: "it could not be done; one sentence on stderr says why and what to do",
    2: "the command was misspelt: an unknown option, a missing or impossible value",
    INTERRUPTED: "ended by Ctrl-C, or by a second signal while answers were still under way",
}
"""What the codes mean, unless a command says otherwise."""

OWN_CODES: dict[str, dict[str, str]] = {
    "check": {"0": "every upstream answers, every key is there", "1": "something is not as it should be"},
    "conform": {"0": "all laws are kept", "1": "laws are broken", "2": "it could not run"},
    "demo": {"0": "shown, or ended by Ctrl-C"},
    "replay": {"1": "with `--diff`: something differs from what the client got then"},
    "run": {"any": "the agent's own; 128 and the signal's number where one ended it"},
    "serve": {"0": "ended by Ctrl-C or SIGTERM, answers under way finished"},
    "tail": {"0": "ended by Ctrl-C"},
    "translate": {"0": "translated, even where the answer itself is an error: stderr says so"},
}
"""What they mean for one command."""


class Friendly(click.Group):
    """A group whose commands answer a user's mistake with one sentence, never with a traceback."""

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        # Docstrings with backslashes are raw: click's mark for lines to keep as they are is spelt out there.
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
            code = _said(click.ClickException(error.message))
        except click.ClickException as error:
            code = _said(error)
        except OSError as error:
            code = _said(click.ClickException(_sentence(error)))
            _forget_what_cannot_be_written()
        sys.exit(code if isinstance(code, int) else 0)

    # Click ends with code 1 when nobody reads its output any more. That is nobody's mistake.

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        try:
            return super().make_context(*args, **extra)
        except BrokenPipeError:
            _leave_quietly()

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _leave_quietly()


def _said(error: click.ClickException) -> int:
    error.show()
    return error.exit_code


def _leave_quietly() -> NoReturn:
    """There is nobody to tell, not even at the interpreter's end, when it empties what it holds."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    raise click.exceptions.Exit(0)


def _forget_what_cannot_be_written() -> None:
    """At the interpreter's end it would be tried once more, and fail with a code of its own (120)."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _sentence(error: OSError) -> str:
    """What the system says, and of which file: a full disk, a folder that may not be read."""
    what = error.strerror or str(error)
    return f"{error.filename}: {what}" if error.filename else what
