"""What makes an agent talk to a gateway: variables, arguments, and files in a folder of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

PLACEHOLDER = "dragoman"
"""Agents refuse to start without a key, even where none is asked for."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway as an agent has to know it."""

    url: str
    """Its root, without `/v1`."""
    key: str | None = PLACEHOLDER
    """None where the agent's own key is passed on to an upstream, and has to stay."""
    model: str | None = None
    """The model that is wanted, if one is."""
    window: int | None = None
    """How many tokens that model takes, where it is known: agents guess for names they do not know."""
    models: tuple[str, ...] = ()
    """All that the gateway lists."""
    folder: Path
    """Where the files of a wiring are to be."""
    env: Mapping[str, str] = {}
    """The user's environment."""

    def key_or(self, variable: str) -> str:
        """For settings that must hold a key: the user's own, from `variable`, where it is passed on."""
        return self.key or self.env.get(variable) or PLACEHOLDER

    @property
    def home(self) -> Path:
        return Path(self.env.get("HOME") or Path.home())


class Wiring(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one agent for one place."""

    env: dict[str, str] = {}
    without: tuple[str, ...] = ()
    """Variables that would lead it elsewhere."""
    args: tuple[str, ...] = ()
    """What comes before the user's own arguments."""
    files: dict[str, str] = {}
    """Below `Place.folder`."""
    links: dict[str, Path] = {}
    """Names below `Place.folder` that lead to files of the user's."""

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in env.items() if name not in self.without}
        return kept | self.env

    def write(self, folder: Path) -> None:
        """Make the files, for nobody's eyes but the user's: they may hold a key."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, text in self.files.items():
            file = folder / name
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
                out.write(text)
        for name, target in self.links.items():
            link = folder / name
            link.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(target)


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """A known agent."""

    name: str
    """What `dragoman run` calls it."""
    title: str
    program: str
    install: str
    wire: Callable[[Place], Wiring]
    needs_model: bool = False
    """It has no model of its own that a route could take."""
    commands: frozenset[str] = frozenset()
    """First words after which it takes none of our arguments."""
