"""What to type next, by what there is: a gateway that runs, a config, keys, or nothing yet."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ...config import ConfigError, find, load
from ..run.clients import CLIENTS
from ..run.gateway import running
from ..serve.service import Settings
from .found import Candidate, keys

Steps = dict[str, str]
"""Commands, and what each does."""


def orientation(env: Mapping[str, str], cwd: Path) -> Iterator[str]:
    """What `dragoman` alone says."""
    says, steps = _situation(env, cwd)
    yield "Dragoman stands between coding agents and models: every tool call arrives whole, valid and once."
    yield ""
    yield f"{says} Next:"
    yield from listed(steps)
    yield "`dragoman --help` lists every command."


def after_writing(
    path: Path, upstreams: Sequence[Candidate], env: Mapping[str, str], cwd: Path
) -> Iterator[str]:
    """What `dragoman init` says when it is done."""
    yield f"{path} is written: {', '.join(each.name for each in upstreams)}. Next:"
    for each in upstreams:
        if each.variable and not env.get(each.variable, "").strip():
            yield f"  export {each.variable}=…"
    yield from listed(
        _with_config("" if _is_found(path, env, cwd) else f" --config {shlex.quote(str(path))}")
    )


def listed(steps: Steps) -> Iterator[str]:
    """Each command with what it does beside it."""
    width = max(map(len, steps))
    for command, says in steps.items():
        yield f"  {command:<{width}}  # {says}"


def _situation(env: Mapping[str, str], cwd: Path) -> tuple[str, Steps]:
    try:
        file = find(None, env, cwd)
        config = load(file, env) if file else None
        gateway = running(Settings(), env)
    except ConfigError as error:
        return f"The config cannot be used: {error.message}.", {
            "dragoman check": "once that is mended: reads it again, and knocks at every upstream"
        }
    if gateway is not None:
        return f"A gateway answers at {gateway.url}.", _with_gateway(gateway.url)
    if file and config:
        shown = file.name if file.parent == cwd else file
        return f"{shown} names {', '.join(config.upstreams)}.", _with_config("")
    found = [each for each in keys(env) if each.usual]
    if found:
        return f"There is no config, but {', '.join(each.why for each in found)}.", {
            f"dragoman run {_agent()}": "an agent on it; `dragoman run` lists the others",
            "dragoman serve": "the gateway alone, for any client",
            "dragoman init": "a config, to say more about it",
        }
    return "There is no config yet, and no provider's key in the environment.", {
        "dragoman demo": "see it work: needs no key and no network",
        "dragoman init": "write a config; finds keys, and model servers on this machine",
    }


def _with_gateway(url: str) -> Steps:
    return {
        f"dragoman run {_agent()}": "an agent on it; `dragoman run` lists the others",
        "dragoman tail": f"what happens there; or look at {url}/inspector",
    }


def _with_config(option: str) -> Steps:
    return {
        f"dragoman check{option}": "resolves every key, knocks at every upstream",
        f"dragoman run{option} {_agent()}": "an agent on it; `dragoman run` lists the others",
        f"dragoman serve{option}": "the gateway alone, for any client",
    }


def _agent() -> str:
    """The first that is installed."""
    return next((name for name, client in CLIENTS.items() if shutil.which(client.program)), "claude")


def _is_found(path: Path, env: Mapping[str, str], cwd: Path) -> bool:
    """Would the commands find it by themselves?"""
    try:
        found = find(None, env, cwd)
    except ConfigError:
        return False
    return found is not None and found.resolve() == path.resolve()
