"""Install the peers below `.bench`, each in its own folder. Reports the ones that cannot be installed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

from . import HOME

_PATIENCE = 900


def _pip(folder: str, *packages: str) -> list[list[str]]:
    python = str(HOME / folder / "bin" / "python")
    make = [sys.executable, "-m", "venv", "--without-pip", str(HOME / folder)]
    return [make, [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", *packages]]


def _npm(folder: str, package: str) -> list[list[str]]:
    place = str(HOME / folder)
    return [["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", place, package]]


# claude-code-router: 3 is a desktop program; 2 is the last that is a command.
STEPS: dict[str, tuple[str, list[list[str]]]] = {
    "LiteLLM": ("litellm/bin/litellm", _pip("litellm", "litellm[proxy]")),
    "claude-code-router": (
        "claude-code-router/node_modules/.bin/ccr",
        _npm("claude-code-router", "@musistudio/claude-code-router@2"),
    ),
    "Portkey": ("portkey/node_modules/@portkey-ai/gateway", _npm("portkey", "@portkey-ai/gateway")),
    "TensorZero": (
        "tensorzero/lib",
        _pip("tensorzero", "tensorzero"),
    ),
}


def install(name: str, say: Callable[[str], None]) -> str:
    """The reason why a peer cannot be installed; empty if it is installed."""
    proof, steps = STEPS[name]
    if (HOME / proof).exists() and (HOME / f"{name}.ready").exists():
        return ""
    HOME.mkdir(parents=True, exist_ok=True)
    say(f"installing {name}")
    for step in steps:
        try:
            done = subprocess.run(step, capture_output=True, timeout=_PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"cannot be installed here: {type(error).__name__}"
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            return f"cannot be installed here: {' '.join(last)[:200]}"
    (HOME / f"{name}.ready").touch()
    return ""


_TOLD = {
    "LiteLLM": "litellm/lib/*/site-packages/litellm-*.dist-info/METADATA",
    "claude-code-router": "claude-code-router/node_modules/@musistudio/claude-code-router/package.json",
    "Portkey": "portkey/node_modules/@portkey-ai/gateway/package.json",
    "TensorZero": "tensorzero/lib/*/site-packages/tensorzero-*.dist-info/METADATA",
}


def version(name: str) -> str:
    """The installed version of a peer."""
    for place in HOME.glob(_TOLD[name]):
        if found := re.search(r'^(?:Version: |\s*"version": ")([^"\n]+)', place.read_text(), re.MULTILINE):
            return found[1]
    return ""
