"""The commands to try next: depends on whether a gateway runs, a config exists, or keys are set."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ...config import ConfigError, find, load
from ..run.agents import AGENTS
from ..run.gateway import running
from ..serve.service import ServeOptions
from .candidates import UpstreamCandidate, keys

Steps = dict[str, str]
"""Commands, and what each does."""

_RUN = "start an agent with the gateway; `dragoman run` lists the agents"
_SERVE = "start only the gateway, for any client"


def orientation(env: Mapping[str, str], cwd: Path) -> Iterator[str]:
    """The text of `dragoman` without a command."""
    situation, steps = _situation(env, cwd)
    yield "Dragoman stands between coding agents and models: every tool call arrives whole, valid and once."
    yield ""
    yield f"{situation} Next:"
    yield from listed(steps)
    yield "`dragoman --help` lists every command."


def after_writing(
    path: Path, upstreams: Sequence[UpstreamCandidate], env: Mapping[str, str], cwd: Path
) -> Iterator[str]:
    """The text of `dragoman init` after it has written the config."""
    yield f"Wrote {path} for {', '.join(each.name for each in upstreams)}. Next:"
    for each in upstreams:
        if each.variable and not env.get(each.variable, "").strip():
            yield f"  export {each.variable}=…"
    yield from listed(
        _with_config("" if _is_found(path, env, cwd) else f" --config {shlex.quote(str(path))}")
    )


def after_template(path: Path) -> Iterator[str]:
    """The text of `dragoman init` after it has written a template."""
    yield "Found no provider key in the environment, and no model server on this machine."
    yield f"Wrote {path} as a template. Uncomment an upstream in it, then run `dragoman check`."


def listed(steps: Steps) -> Iterator[str]:
    width = max(map(len, steps))
    for command, purpose in steps.items():
        yield f"  {command:<{width}}  # {purpose}"


def _situation(env: Mapping[str, str], cwd: Path) -> tuple[str, Steps]:
    try:
        file = find(None, env, cwd)
        config = load(file, env) if file else None
        gateway = running(ServeOptions(), env)
    except ConfigError as error:
        return f"The config has an error: {error.message}.", {
            "dragoman check": "after you fix it: checks the config and every upstream"
        }
    if gateway is not None:
        return f"A gateway answers at {gateway.url}.", _with_gateway(gateway.url)
    if file and config:
        shown = file.name if file.parent == cwd else file
        return f"{shown} names {', '.join(config.upstreams)}.", _with_config("")
    found = [each for each in keys(env) if each.usual]
    if found:
        return f"There is no config, but {', '.join(each.why for each in found)}.", {
            f"dragoman run {_agent()}": _RUN,
            "dragoman serve": _SERVE,
            "dragoman init": "write a config",
        }
    return "There is no config yet, and no provider key is set in the environment.", {
        "dragoman demo": "see it work: needs no key and no network",
        "dragoman init": "write a config; finds keys, and model servers on this machine",
    }


def _with_gateway(url: str) -> Steps:
    return {
        f"dragoman run {_agent()}": _RUN,
        "dragoman tail": f"follow its exchanges; or open {url}/inspector",
    }


def _with_config(option: str) -> Steps:
    return {
        f"dragoman check{option}": "check every key and every upstream",
        f"dragoman run{option} {_agent()}": _RUN,
        f"dragoman serve{option}": _SERVE,
    }


def _agent() -> str:
    """The first agent that is installed."""
    return next((name for name, client in AGENTS.items() if shutil.which(client.program)), "claude")


def _is_found(path: Path, env: Mapping[str, str], cwd: Path) -> bool:
    """Do the commands find this config without `--config`?"""
    try:
        found = find(None, env, cwd)
    except ConfigError:
        return False
    return found is not None and found.resolve() == path.resolve()
