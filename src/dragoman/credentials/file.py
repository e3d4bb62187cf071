"""A secret in a file: the whole content, or a field of its JSON."""

from __future__ import annotations

import os
from collections.abc import Callable

from .base import Reading, ReadProblem, Stamp
from .stamps import file_stamp
from .values import extract

MAX_SIZE = 1024 * 1024
"""Credential files have a few kilobytes. A wrong path may name a file of gigabytes."""


class FileReader:
    """Follows a file that others write, replace, or switch by symbolic links (Kubernetes secrets)."""

    renews = False
    pause = 0.25

    def __init__(self, path: str, field: str, clock: Callable[[], float]) -> None:
        self._shown = path
        self._path = os.path.expanduser(path)
        self._field = field
        self._clock = clock

    def stamp(self) -> Stamp:
        return file_stamp(self._path)

    async def read(self, *, force: bool) -> Reading | ReadProblem:
        data = load(self._path, self._shown)
        if isinstance(data, ReadProblem):
            return data
        found = extract(data, self._field, now=self._clock())
        return ReadProblem(f"the file {self._shown} {found.why}") if isinstance(found, ReadProblem) else found


def load(path: str, shown: str) -> bytes | ReadProblem:
    """The content of a small file. `shown` is its name in errors."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_SIZE + 1)
    except FileNotFoundError:
        return ReadProblem(f"the file {shown} does not exist; create it, or correct the path")
    except IsADirectoryError:
        return ReadProblem(f"the path {shown} is a folder; name the file in it")
    except PermissionError:
        return ReadProblem(f"the file {shown} is not readable; give this user permission to read it")
    except OSError as error:
        return ReadProblem(f"the file {shown} cannot be read ({error.strerror or 'unknown reason'})")
    except ValueError:
        return ReadProblem("the path of the credential file contains a zero byte; correct the path")
    if len(data) > MAX_SIZE:
        return ReadProblem(f"the file {shown} is too big for a credential; correct the path")
    return data
