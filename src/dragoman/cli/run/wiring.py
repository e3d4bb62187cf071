"""The settings that connect an agent to a gateway: variables, arguments, and files in a private folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

PLACEHOLDER = "dragoman"
"""The key for a gateway without keys: agents refuse to start without one."""


class AgentEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that an agent needs to know about its gateway."""

    url: str
    """The root, without `/v1`."""
    key: str | None = PLACEHOLDER
    """None if the gateway passes the agent's own key on to an upstream."""
    model: str | None = None
    """The model to use; None leaves the choice to the agent."""
    window: int | None = None
    """The context window of that model in tokens, if known. Agents guess it for models they do not know."""
    models: tuple[str, ...] = ()
    """All models that the gateway lists."""
    folder: Path
    """The folder for the files of a wiring."""
    env: Mapping[str, str] = {}
    """The user's environment."""

    def key_or(self, variable: str) -> str:
        """The key for settings that must hold one. Falls back to the user's own key in `variable`."""
        return self.key or self.env.get(variable) or PLACEHOLDER

    @property
    def home(self) -> Path:
        return Path(self.env.get("HOME") or Path.home())


class Wiring(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one agent for one endpoint."""

    env: dict[str, str] = {}
    without: tuple[str, ...] = ()
    """Variables to remove: they would point the agent at another endpoint."""
    args: tuple[str, ...] = ()
    """Arguments before the user's own."""
    files: dict[str, str] = {}
    """Files to write below `AgentEndpoint.folder`: path and text."""
    links: dict[str, Path] = {}
    """Symbolic links below `AgentEndpoint.folder`: path and the user's file."""

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in env.items() if name not in self.without}
        return kept | self.env

    def write(self, folder: Path) -> None:
        """Write the files and links. Only the user can read the files: they may hold a key."""
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


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """A coding agent that `dragoman run` can start."""

    name: str
    """The CLIENT argument of `dragoman run`."""
    title: str
    program: str
    install: str
    wire: Callable[[AgentEndpoint], Wiring]
    needs_model: bool = False
    """The agent does not choose a model itself."""
    commands: frozenset[str] = frozenset()
    """Subcommands that do not accept the arguments of the wiring."""
