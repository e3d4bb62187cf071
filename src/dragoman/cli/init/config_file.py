"""Write the config file. Never overwrites an existing file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...config import loads
from ...model.errors import DragomanError
from .candidates import UpstreamCandidate
from .config_text import config_text, template_text


def must_be_free(path: Path) -> None:
    """Refuse an existing file, before the user answers any question."""
    if path.exists() or path.is_symlink():
        raise _taken(path)


def write(path: Path, upstreams: Sequence[UpstreamCandidate], *, port: int, model: str | None) -> None:
    """Write a config that Dragoman can read, or raise an error and leave no file."""
    text = config_text(upstreams, port=port, model=model)
    loads(text, shown=str(path), env={})
    _write(path, text)


def write_template(path: Path, *, port: int) -> None:
    """Write a config whose upstreams are commented out, for the user to fill in."""
    _write(path, template_text(port=port))


def _write(path: Path, text: str) -> None:
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
        path.unlink(missing_ok=True)  # a half-written config would be read as a whole one
        raise _cannot(path, error) from None


def _cannot(path: Path, error: OSError) -> DragomanError:
    reason = error.strerror or str(error)
    return DragomanError(f"{path} cannot be written: {reason}; give another place with --output")


def _taken(path: Path) -> DragomanError:
    return DragomanError(
        f"{path} exists and was not changed; move it away, or write another file with --output FILE"
    )
