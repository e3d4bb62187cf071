"""One line per event: readable on a terminal, JSON everywhere else. One id runs through all of them."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any, TextIO

import click
import msgspec

_COLOURS = {"DEBUG": "bright_black", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Lines(logging.Formatter):
    """For people: time, level where it matters, message, then the fields."""

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        fields = " ".join(f"{key}={value}" for key, value in _fields(record).items())
        text = " ".join(part for part in (clock, record.getMessage(), fields) if part)
        if record.exc_info and record.exc_info[1] is not None:
            text += f" ({type(record.exc_info[1]).__name__})"
        colour = _COLOURS.get(record.levelname)
        return click.style(text, fg=colour) if colour else text


class Json(logging.Formatter):
    """For programs: one object a line."""

    def format(self, record: logging.LogRecord) -> str:
        value: dict[str, Any] = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info and record.exc_info[1] is not None:
            value["exception"] = type(record.exc_info[1]).__name__
        return msgspec.json.encode(value, enc_hook=str).decode()


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _PLAIN and value is not None}


def set_up(level: str = "info", stream: TextIO = sys.stderr) -> None:
    """Send Dragoman's log to `stream`, in the form its reader can use."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(Lines() if stream.isatty() else Json())
    root = logging.getLogger("dragoman")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
