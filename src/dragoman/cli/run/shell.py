"""The settings of an agent as text: lines for a shell, and the files they speak of."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ..serve.service import data_folder
from .gateway import expected
from .start import Order, place
from .wiring import Client, Wiring


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


def settings_of(order: Order, env: Mapping[str, str], shell: str, *, write: bool) -> list[str]:
    """What `run` would do for `order`, for the gateway that runs or would run at the configured place."""
    gateway = expected(order.settings, env)
    folder = data_folder(env) / order.client.name
    wiring = order.client.wire(place(order, gateway, folder, env))
    if write:
        wiring.write(folder)
    return list(_lines(order.client, wiring, folder, shell, written=write))


def _lines(client: Client, wiring: Wiring, folder: Path, shell: str, *, written: bool) -> Iterator[str]:
    """Every line. All but the settings themselves are comments, so that a shell can take them in."""
    line = SHELLS[shell]
    for name, text in wiring.files.items():
        yield f"# {'This is' if written else 'Put this'} in {folder / name}:"
        yield from (f"#   {each}" for each in text.splitlines())
    for name, target in wiring.links.items():
        yield f"# {'A link at' if written else 'Make a link at'} {folder / name} to {target}"
    yield from (line(name, None) for name in wiring.without)
    yield from (line(name, value) for name, value in wiring.env.items())
    yield f"# Then: {shlex.join([client.program, *wiring.args])}"
