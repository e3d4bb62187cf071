"""Log formats: one readable line per event on a terminal, one JSON object per line everywhere else."""

from __future__ import annotations

import logging
import sys
import time
import traceback
from pathlib import Path
from typing import Any, TextIO

import click
import msgspec

from ..wire.surrogates import replace_lone_surrogates

_COLOURS = {"DEBUG": "bright_black", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}
_LONGEST = 2000
_FRAMES = 4  # of the innermost
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Lines(logging.Formatter):
    """The format for a terminal: time, message, fields. The colour shows the level."""

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        fields = " ".join(f"{key}={value}" for key, value in _fields(record).items())
        text = _one_line(" ".join(part for part in (clock, record.getMessage(), fields) if part))
        fault = _fault(record)
        if fault:
            text += f" ({fault})"
        colour = _COLOURS.get(record.levelname)
        return click.style(text, fg=colour) if colour else text


class Json(logging.Formatter):
    """The format for programs: one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        value: dict[str, Any] = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:_LONGEST],
            **_fields(record),
        }
        fault = _fault(record)
        if fault:
            value["exception"] = fault
        return msgspec.json.encode(replace_lone_surrogates(value), enc_hook=str).decode()


def _one_line(text: str) -> str:
    """Escape line ends and terminal codes: clients choose model names and could forge log lines with them."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[:_LONGEST])


def _fault(record: logging.LogRecord) -> str:
    """The type of an exception and its place. Not its message: that may quote a request with secrets."""
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    error = record.exc_info[1]
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    places = [f"{Path(frame.filename).stem}:{frame.lineno}" for frame in frames]
    return " ".join([type(error).__name__, *(["at", " > ".join(places)] if places else [])])


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _PLAIN and value is not None}


def set_up(level: str = "info", stream: TextIO = sys.stderr) -> None:
    """Send Dragoman's log to `stream`: readable lines for a terminal, else JSON."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Lines() if stream.isatty() else Json())
    root = logging.getLogger("dragoman")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
