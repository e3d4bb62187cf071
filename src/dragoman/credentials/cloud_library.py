"""Shared by the clouds' credentials: import the provider's library at the first read, and map its errors."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

from .base import FinishedRequest, ReadProblem, Signer, Stamp
from .secret import Secret
from .stamps import file_stamp

_LONGEST = 300
PAUSE = 5.0
"""Seconds before the next read after a failed one: the library has already retried."""


def import_library(extra: str, *modules: str) -> list[ModuleType] | ReadProblem:
    """Import the modules. `extra` is the extra of Dragoman that installs them."""
    # The reader logs what went wrong, in one line. The libraries would write tracebacks beside it.
    library = logging.getLogger(modules[0].partition(".")[0])
    if not library.handlers:
        library.addHandler(logging.NullHandler())
    try:
        return [importlib.import_module(module) for module in modules]
    except ImportError as error:
        return ReadProblem(f"{error.name} is not installed; run `pip install 'dragoman[{extra}]'`")


def library_problem(what: str, error: Exception) -> ReadProblem:
    """The problem for an error of a library. Only its first line: the rest may quote an answer."""
    why = (str(error).strip() or type(error).__name__).partition("\n")[0]
    return ReadProblem(f"{what}: {why[:_LONGEST]}")


def stamp(environment: Mapping[str, str], variables: Iterable[str], paths: Iterable[str]) -> Stamp:
    """The change check for what a library reads: environment variables and files."""
    # Hashes, not values: a stamp may be shown, and some of the values are secrets.
    files = file_stamp(*paths)
    return Stamp((*(hash(environment.get(name)) for name in variables), *files.marks), files.settled)


def content_digest(
    environment: Mapping[str, str], variables: Iterable[str], paths: Iterable[str]
) -> tuple[int, ...]:
    """Equal as long as a library would read the same there. Unlike `stamp`, it reads the files."""
    contents: list[bytes | None] = []
    for path in paths:
        try:
            contents.append(Path(path).read_bytes())
        except OSError:
            contents.append(None)
    return (*(hash(environment.get(name)) for name in variables), *map(hash, contents))


def bearer(secret: Secret, more: Mapping[str, str] | None = None) -> Signer:
    """Send `secret` as a bearer token, whatever the header of the upstream's protocol is."""

    def sign(request: FinishedRequest) -> dict[str, str]:
        return {"authorization": f"Bearer {secret.reveal()}", **(more or {})}

    return sign
