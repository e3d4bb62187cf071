"""The rows of the table: agents as their users start them, and one script per SDK."""

import re
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path

import installs

HERE = Path(__file__).parent
QUESTION = "Run the command `echo well done > proof.txt`"
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "GEMINI_CLI_TRUST_WORKSPACE": "true",
    "IS_SANDBOX": "1",  # as root, Claude Code skips permissions only in a sandbox
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "KILO_DISABLE_AUTOUPDATE": "1",
    "KILO_DISABLE_MODELS_FETCH": "1",
    "PI_OFFLINE": "1",
    "CLINE_NO_AUTO_UPDATE": "1",
    "TERM": "dumb",
}


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    needs: frozenset[str]
    """What has to be installed for it."""
    command: tuple[str, ...]
    """What to start; for an agent, what stands behind `dragoman run`."""
    agent: bool = False
    own_model: bool = False
    """The agent requests a model that it knows, and then sends other members than for unknown models."""
    env: dict[str, str] = field(default_factory=dict)
    proof: str = "well done\n"
    """What has to be in proof.txt afterwards."""
    websocket: bool = False
    """It has to ask over a WebSocket, and over nothing else."""
    compacts: bool = False
    """It has to have its conversation compacted, and to go on from the result."""
    replays: bool = False
    """It runs once with a model and twice with the recording of that: both have to ask for the same."""


def _agent(name: str, package: str, *command: str, own_model: bool = False) -> Row:
    return Row(name, frozenset({package}), command, agent=True, own_model=own_model)


def _sdk(name: str, script: str, **env: str) -> Row:
    command = (str(installs.python("sdks")), str(HERE / "sdks" / script))
    return Row(name, frozenset({"sdks"}), command, env=env, proof="well done\n" * 2)


def _ai_sdk(wire: str) -> Row:
    command = ("node", str(HERE / "sdks" / "ai_sdk.mjs"))
    modules = str(installs.PLACE / "npm" / "ai-sdk" / "package.json")
    env = {"WIRE": wire, "MODULES": modules}
    return Row(f"AI SDK, {wire}", frozenset({"ai-sdk"}), command, env=env, proof="well done\n" * 2)


AIDER = ("--no-git", "--yes-always", "--no-check-update", "--analytics-disable", "--edit-format", "diff")
CODEX = ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")

# Codex's own provider, sent to the gateway. `dragoman run` gives it another one, which posts.
BUILT_IN = f"""exec codex {" ".join(CODEX)} -c openai_base_url="$BASE/v1" -m "$MODEL" '{QUESTION}'"""

# Codex has its provider compact a conversation if the provider is named OpenAI, as its own one is. The first
# turn leaves a long result in the history: about 12,000 tokens are in it then, and 9,000 without the result.
POSTING = (
    "-c model_provider=gateway -c model_providers.gateway.name=OpenAI "
    '-c model_providers.gateway.base_url="$BASE/v1" -c model_providers.gateway.wire_api=responses '
    "-c model_providers.gateway.env_key=KEY"
)


def _compacting(provider: str) -> tuple[str, ...]:
    options = f'{" ".join(CODEX[1:])} {provider} -m "$MODEL"'
    first = f"codex exec {options} 'Run the command `seq 1 4000`'"
    limit = "-c model_auto_compact_token_limit=10500"
    return ("sh", "-c", f"{first} && exec codex exec resume --last {options} {limit} '{QUESTION}'")


CLAUDE = ("claude", "--dangerously-skip-permissions", "-p", QUESTION)


def _in_cloud(cloud: str, address: str, **env: str) -> Row:
    """Claude Code in its mode for a cloud, with the gateway as the cloud's address."""
    command = f"""{address} exec claude --dangerously-skip-permissions --model "$MODEL" -p '{QUESTION}'"""
    # The small model for background jobs has a name of its own in each cloud.
    small = 'ANTHROPIC_SMALL_FAST_MODEL="$MODEL" ANTHROPIC_DEFAULT_HAIKU_MODEL="$MODEL"'
    return Row(
        f"Claude Code, {cloud}", frozenset({"claude-code"}), ("sh", "-c", f"{small} {command}"), env=env
    )


GEMINI = ("gemini", "--yolo", "-p", QUESTION)


def _suggested(name: str, package: str, command: tuple[str, ...], *, replays: bool = False) -> Row:
    """An agent started by the line that the inspector shows while it is empty, with what it has to do."""
    page = installs.ROOT / "src" / "dragoman" / "observe" / "inspector" / "first_steps.js"
    found = re.search(r"`(dragoman run [^`]*)`", page.read_text())
    assert found is not None
    line = (
        found[1]
        .replace("${port}", "${BASE##*:}")
        .replace("${agent}", '--model "$MODEL" ' + shlex.join(command))
    )
    line = line.replace("dragoman", shlex.join([sys.executable, "-m", "dragoman"]), 1)
    return Row(name, frozenset({package}), ("sh", "-c", f"exec {line}"), replays=replays)


ROWS = (
    _agent("Claude Code", "claude-code", *CLAUDE),
    _agent("Claude Code, opus", "claude-code", *CLAUDE, "--model", "opus", own_model=True),
    _agent("Claude Code, sonnet-4-5", "claude-code", *CLAUDE, "--model", "claude-sonnet-4-5", own_model=True),
    _in_cloud(
        "Bedrock",
        'ANTHROPIC_BEDROCK_BASE_URL="$BASE"',
        CLAUDE_CODE_USE_BEDROCK="1",
        CLAUDE_CODE_SKIP_BEDROCK_AUTH="1",
        AWS_REGION="us-east-1",
    ),
    _in_cloud(
        "Vertex AI",
        'ANTHROPIC_VERTEX_BASE_URL="$BASE/v1"',
        CLAUDE_CODE_USE_VERTEX="1",
        CLAUDE_CODE_SKIP_VERTEX_AUTH="1",
        CLOUD_ML_REGION="global",
        ANTHROPIC_VERTEX_PROJECT_ID="my-project",
    ),
    _suggested("Claude Code, as the inspector says", "claude-code", CLAUDE),
    _suggested("Claude Code, replayed", "claude-code", CLAUDE, replays=True),
    _agent("Codex", "codex", "codex", *CODEX, QUESTION),
    _suggested("Codex, as the inspector says", "codex", ("codex", *CODEX, QUESTION)),
    _suggested("Codex, replayed", "codex", ("codex", *CODEX, QUESTION), replays=True),
    _agent("Codex, gpt-5.5", "codex", "codex", *CODEX, "-m", "gpt-5.5", QUESTION, own_model=True),
    _agent("Codex, gpt-5.6-sol", "codex", "codex", *CODEX, "-m", "gpt-5.6-sol", QUESTION, own_model=True),
    Row(
        "Codex, built-in provider over WebSocket",
        frozenset({"codex"}),
        ("sh", "-c", BUILT_IN),
        env={"CODEX_API_KEY": "dragoman"},
        websocket=True,
    ),
    Row(
        "Codex, compaction by a provider named OpenAI",
        frozenset({"codex"}),
        _compacting(POSTING),
        compacts=True,
    ),
    Row(
        "Codex, compaction by the built-in provider over WebSocket",
        frozenset({"codex"}),
        _compacting('-c openai_base_url="$BASE/v1"'),
        env={"CODEX_API_KEY": "dragoman"},
        websocket=True,
        compacts=True,
    ),
    _agent("Gemini CLI", "gemini-cli", *GEMINI),
    _suggested("Gemini CLI, as the inspector says", "gemini-cli", GEMINI),
    _agent("Gemini CLI, auto", "gemini-cli", *GEMINI, "-m", "auto", own_model=True),
    _agent("opencode", "opencode", "opencode", "run", QUESTION),
    _agent("Kilo", "kilo", "kilo", "run", "--auto", QUESTION),
    _agent("Qwen Code", "qwen-code", "qwen", "--yolo", "-p", QUESTION),
    _agent("Cline", "cline", "cline", QUESTION),
    _agent("Continue", "continue", "continue", "--auto", "-p", QUESTION),
    _agent("pi", "pi", "pi", "-p", QUESTION),
    _agent("aider", "aider", "aider", *AIDER, "--message", 'Write "well done" to proof.txt'),
    _sdk("Cursor's shapes", "cursor_shapes.py"),
    _sdk("anthropic", "anthropic_messages.py"),
    _sdk("openai, chat", "openai_chat.py"),
    _sdk("openai, responses", "openai_responses.py"),
    _sdk("google-genai", "google_genai.py"),
    _sdk("openai-agents, chat", "openai_agents.py", WIRE="chat_completions"),
    _sdk("openai-agents, responses", "openai_agents.py", WIRE="responses"),
    _sdk("claude-agent-sdk", "claude_agent.py"),
    *(
        _sdk(f"pydantic-ai, {wire}", "pydantic_agent.py", WIRE=wire)
        for wire in ("anthropic", "chat", "responses", "gemini")
    ),
    *(
        _sdk(f"langchain, {wire}", "langchain_agent.py", WIRE=wire)
        for wire in ("anthropic", "chat", "responses")
    ),
    *map(_ai_sdk, ("anthropic", "chat", "compatible", "responses", "gemini")),
)


def dragoman(*args: str) -> list[str]:
    return [sys.executable, "-m", "dragoman", *args]
