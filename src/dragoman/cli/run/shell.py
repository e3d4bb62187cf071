"""The settings of an agent as shell commands, with the files that they need as comments."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ..serve.service import data_folder
from .gateway import expected
from .start import Launch, endpoint
from .wiring import Agent, Wiring


def _sh(name: str, value: str | None) -> str:
    return f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}"


def _fish(name: str, value: str | None) -> str:
    if value is None:
        return f"set -e {name}"
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"set -gx {name} '{quoted}'"


def _powershell(name: str, value: str | None) -> str:
    quoted = "$null" if value is None else "'{}'".format(value.replace("'", "''"))
    return f"$env:{name} = {quoted}"


SHELLS: dict[str, Callable[[str, str | None], str]] = {"sh": _sh, "fish": _fish, "powershell": _powershell}


def settings_of(launch: Launch, env: Mapping[str, str], shell: str, *, write: bool) -> list[str]:
    """The lines for `launch` and the gateway that runs, or would run, at the configured address."""
    gateway = expected(launch.options, env)
    folder = data_folder(env) / launch.agent.name
    wiring = launch.agent.wire(endpoint(launch, gateway, folder, env))
    if write:
        wiring.write(folder)
    return list(_lines(launch.agent, wiring, folder, shell, written=write))


def _lines(client: Agent, wiring: Wiring, folder: Path, shell: str, *, written: bool) -> Iterator[str]:
    """All lines. Everything except the settings is a comment, so that a shell can `eval` the output."""
    line = SHELLS[shell]
    for name, text in wiring.files.items():
        yield f"# {'This is' if written else 'Put this'} in {folder / name}:"
        yield from (f"#   {each}" for each in text.splitlines())
    for name, target in wiring.links.items():
        yield f"# {'A link at' if written else 'Make a link at'} {folder / name} to {target}"
    yield from (line(name, None) for name in wiring.without)
    yield from (line(name, value) for name, value in wiring.env.items())
    yield f"# Then: {shlex.join([client.program, *wiring.args])}"
