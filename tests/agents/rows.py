"""Everything that is put through Dragoman: agents as their users start them, and one script for each SDK."""

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
    "IS_SANDBOX": "1",  # Claude Code runs tools unasked as root only there
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
    """It asks for a model of its own, which it knows: what it sends then is not what others get."""
    env: dict[str, str] = field(default_factory=dict)
    proof: str = "well done\n"
    """What has to be in proof.txt afterwards."""
    websocket: bool = False
    """It has to ask over a WebSocket, and over nothing else."""


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

CLAUDE = ("claude", "--dangerously-skip-permissions", "-p", QUESTION)
GEMINI = ("gemini", "--yolo", "-p", QUESTION)

ROWS = (
    _agent("Claude Code", "claude-code", *CLAUDE),
    _agent("Claude Code, opus", "claude-code", *CLAUDE, "--model", "opus", own_model=True),
    _agent("Claude Code, sonnet-4-5", "claude-code", *CLAUDE, "--model", "claude-sonnet-4-5", own_model=True),
    _agent("Codex", "codex", "codex", *CODEX, QUESTION),
    _agent("Codex, gpt-5.5", "codex", "codex", *CODEX, "-m", "gpt-5.5", QUESTION, own_model=True),
    _agent("Codex, gpt-5.6-sol", "codex", "codex", *CODEX, "-m", "gpt-5.6-sol", QUESTION, own_model=True),
    Row(
        "Codex, built-in provider over WebSocket",
        frozenset({"codex"}),
        ("sh", "-c", BUILT_IN),
        env={"CODEX_API_KEY": "dragoman"},
        websocket=True,
    ),
    _agent("Gemini CLI", "gemini-cli", *GEMINI),
    _agent("Gemini CLI, auto", "gemini-cli", *GEMINI, "-m", "auto", own_model=True),
    _agent("opencode", "opencode", "opencode", "run", QUESTION),
    _agent("Kilo", "kilo", "kilo", "run", "--auto", QUESTION),
    _agent("Qwen Code", "qwen-code", "qwen", "--yolo", "-p", QUESTION),
    _agent("Cline", "cline", "cline", QUESTION),
    _agent("Continue", "continue", "continue", "--auto", "-p", QUESTION),
    _agent("pi", "pi", "pi", "-p", QUESTION),
    _agent("aider", "aider", "aider", *AIDER, "--message", 'Write "well done" to proof.txt'),
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
