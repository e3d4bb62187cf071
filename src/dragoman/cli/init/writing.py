"""The file: written once, never over another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...config import loads
from ...model.errors import DragomanError
from .found import Candidate
from .text import config_text


def must_be_free(path: Path) -> None:
    """Said before anybody has answered a question."""
    if path.exists() or path.is_symlink():
        raise _taken(path)


def write(path: Path, upstreams: Sequence[Candidate], *, port: int, model: str | None) -> None:
    """A config that can be read, in a file of its own, or an error and no file."""
    text = config_text(upstreams, port=port, model=model)
    loads(text, shown=str(path), env={})
    try:
        file = path.open("x", encoding="utf-8")
    except FileExistsError:
        raise _taken(path) from None
    except FileNotFoundError:
        raise DragomanError(f"{path} cannot be written: make the folder {path.parent} first") from None
    except OSError as error:
        raise _cannot(path, error) from None
    try:
        with file:
            file.write(text)
    except OSError as error:
        path.unlink(missing_ok=True)  # half a config is worse than none, and it is ours
        raise _cannot(path, error) from None


def _cannot(path: Path, error: OSError) -> DragomanError:
    reason = error.strerror or str(error)
    return DragomanError(f"{path} cannot be written: {reason}; give another place with --output")


def _taken(path: Path) -> DragomanError:
    return DragomanError(
        f"{path} is already there, and is left as it is; move it away, or write another with --output FILE"
    )
