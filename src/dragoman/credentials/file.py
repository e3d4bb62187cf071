"""A secret in a file: its whole content, or a member of its JSON."""

from __future__ import annotations

import os
from collections.abc import Callable

from .base import Problem, Reading, Stamp
from .stamps import file_stamp
from .values import extract

MAX_SIZE = 1024 * 1024
"""Credential files have a few kilobytes; a wrong path may have gigabytes."""


class FileReader:
    """Follows a file that others write, also one that is replaced or reached over links (Kubernetes)."""

    renews = False
    pause = 0.25

    def __init__(self, path: str, field: str, clock: Callable[[], float]) -> None:
        self._shown = path
        self._path = os.path.expanduser(path)
        self._field = field
        self._clock = clock

    def stamp(self) -> Stamp:
        return file_stamp(self._path)

    async def read(self, *, force: bool) -> Reading | Problem:
        data = load(self._path, self._shown)
        if isinstance(data, Problem):
            return data
        found = extract(data, self._field, now=self._clock())
        return Problem(f"the file {self._shown} {found.why}") if isinstance(found, Problem) else found


def load(path: str, shown: str) -> bytes | Problem:
    """A small file's content."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_SIZE + 1)
    except FileNotFoundError:
        return Problem(f"the file {shown} does not exist; make it, or mend the path")
    except IsADirectoryError:
        return Problem(f"the path {shown} is a folder; name the file in it")
    except PermissionError:
        return Problem(f"the file {shown} may not be read; give this user the right to")
    except OSError as error:
        return Problem(f"the file {shown} cannot be read ({error.strerror or type(error).__name__})")
    except ValueError:
        return Problem("the path of the credential file has a zero byte in it; mend the path")
    if len(data) > MAX_SIZE:
        return Problem(f"the file {shown} is too big for a credential; mend the path")
    return data
