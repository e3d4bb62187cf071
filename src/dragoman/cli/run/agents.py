"""The agents that Dragoman can start: one small function and one table entry each.

Every agent keeps its own settings, sessions and MCP servers. A function only changes where the agent finds
its models. What each function sets was found by running the agent.
"""

from __future__ import annotations

import difflib
from typing import Any

import msgspec

from ...model.errors import DragomanError
from .wiring import Agent, AgentEndpoint, Wiring

_json = msgspec.json.Encoder().encode


def _text(value: Any) -> str:
    return msgspec.json.format(_json(value), indent=2).decode() + "\n"


def _claude(endpoint: AgentEndpoint) -> Wiring:
    env = {"ANTHROPIC_BASE_URL": endpoint.url}  # without /v1, which the SDK adds
    # These variables make Claude Code ignore the base URL.
    elsewhere = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
    if endpoint.key is not None:
        # Claude Code asks the user before it uses a new ANTHROPIC_API_KEY. It uses a token without asking.
        env["ANTHROPIC_AUTH_TOKEN"] = endpoint.key
        elsewhere += ("ANTHROPIC_API_KEY",)
    if endpoint.model:
        # Claude Code asks for a model of each size, and for a small one in the background.
        names = ("MODEL", "DEFAULT_OPUS_MODEL", "DEFAULT_SONNET_MODEL", "DEFAULT_HAIKU_MODEL")
        env |= {f"ANTHROPIC_{name}": endpoint.model for name in names}
    if endpoint.window:
        env["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] = str(endpoint.window)
    # The `env` in the user's settings wins over the environment, and the file of --settings wins over both.
    file = "settings.json"
    return Wiring(
        env=env,
        without=elsewhere,
        args=("--settings", str(endpoint.folder / file)),
        files={file: _text({"env": env})},
    )


def _codex(endpoint: AgentEndpoint) -> Wiring:
    # Not `OPENAI_BASE_URL`: Codex ignores it.
    variable = "DRAGOMAN_KEY" if endpoint.key else "OPENAI_API_KEY"
    overrides: dict[str, str | int] = {
        "model_provider": "dragoman",
        # For a provider named "OpenAI", Codex would ask for remote compaction.
        "model_providers.dragoman.name": "Dragoman",
        "model_providers.dragoman.base_url": f"{endpoint.url}/v1",
        # Codex no longer supports "chat".
        "model_providers.dragoman.wire_api": "responses",
        "model_providers.dragoman.env_key": variable,
    }
    if endpoint.model:
        overrides["model"] = endpoint.model
    if endpoint.window:
        overrides["model_context_window"] = endpoint.window
    # Codex reads the value of `-c key=value` as TOML. A JSON string or number is valid TOML.
    args = tuple(
        word for key, value in overrides.items() for word in ("-c", f"{key}={_json(value).decode()}")
    )
    return Wiring(env={variable: endpoint.key_or("OPENAI_API_KEY")}, args=args)


def _gemini(endpoint: AgentEndpoint) -> Wiring:
    # Gemini CLI adds /v1beta.
    env = {"GOOGLE_GEMINI_BASE_URL": endpoint.url, "GEMINI_API_KEY": endpoint.key_or("GEMINI_API_KEY")}
    elsewhere = ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GOOGLE_API_KEY")
    if endpoint.model:
        env["GEMINI_MODEL"] = endpoint.model
    own = endpoint.home / ".gemini"
    settings = _user_settings(own / "settings.json")
    security: dict[str, Any] = settings.get("security") or {}
    auth: dict[str, Any] = security.get("auth") or {}
    if auth.get("selectedType") == "gemini-api-key":
        return Wiring(env=env, without=elsewhere)
    # Only the settings file of Gemini CLI can choose the API key as the login. So the agent gets its own home
    # folder with such settings, and links to everything else in the user's folder.
    auth = {**auth, "selectedType": "gemini-api-key"}
    chosen = {**settings, "security": {**security, "auth": auth}}
    entries = sorted(own.iterdir()) if own.is_dir() else []
    return Wiring(
        env={**env, "GEMINI_CLI_HOME": str(endpoint.folder)},
        without=elsewhere,
        files={".gemini/settings.json": _text(chosen)},
        links={f".gemini/{entry.name}": entry for entry in entries if entry.name != "settings.json"},
    )


def _user_settings(file: Any) -> dict[str, Any]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise DragomanError(
            f"{file} cannot be read ({error}), and Gemini CLI would lose its settings; "
            "choose the Gemini API key in /auth, or remove the comments from the file"
        ) from None


def _opencode(variable: str) -> Any:
    """opencode and its fork Kilo read a config from one variable and merge it over the user's config."""

    def wire(endpoint: AgentEndpoint) -> Wiring:
        model = f"dragoman/{endpoint.model}"
        provider: dict[str, Any] = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Dragoman",
            "options": {"baseURL": f"{endpoint.url}/v1", "apiKey": endpoint.key_or("OPENAI_API_KEY")},
            "models": {name: {} for name in _models(endpoint)},
        }
        # opencode uses the small model for the title of a session, in a request before the first one.
        config = {"model": model, "small_model": model, "provider": {"dragoman": provider}}
        return Wiring(env={variable: _json(config).decode()})

    return wire


def _qwen(endpoint: AgentEndpoint) -> Wiring:
    env = {
        "OPENAI_BASE_URL": f"{endpoint.url}/v1",
        "OPENAI_API_KEY": endpoint.key_or("OPENAI_API_KEY"),
        "OPENAI_MODEL": endpoint.model or "",
    }
    # Qwen Code takes the protocol from this option.
    return Wiring(env=env, args=("--auth-type", "openai"))


def _cline(endpoint: AgentEndpoint) -> Wiring:
    # `cline auth -b` accepts a base URL only for OpenAI, and Cline ignores `ANTHROPIC_BASE_URL`. The file
    # works for all.
    settings = {
        "provider": "openai-compatible",
        "apiKey": endpoint.key_or("OPENAI_API_KEY"),
        "model": endpoint.model,
        "baseUrl": f"{endpoint.url}/v1",
    }
    entry = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    providers = {
        "version": 1,
        "lastUsedProvider": "openai-compatible",
        "modes": {},
        "providers": {"openai-compatible": entry},
    }
    env = {
        "CLINE_PROVIDER_SETTINGS_PATH": str(endpoint.folder / "providers.json"),
        # A Cline hub that is already running would use the user's own providers.
        "CLINE_SESSION_BACKEND_MODE": "local",
    }
    return Wiring(env=env, files={"providers.json": _text(providers)})


def _continue(endpoint: AgentEndpoint) -> Wiring:
    models = [
        {
            "name": name,
            "provider": "openai",
            "model": name,
            "apiBase": f"{endpoint.url}/v1",
            "apiKey": endpoint.key_or("OPENAI_API_KEY"),
            "roles": ["chat", "edit", "apply"],
            # Continue offers no tools to a model that it does not know, unless this says so.
            "capabilities": ["tool_use"],
        }
        for name in _models(endpoint)
    ]
    config = {"name": "Dragoman", "version": "1.0.0", "schema": "v1", "models": models}
    file = "config.yaml"  # JSON is YAML too
    return Wiring(args=("--config", str(endpoint.folder / file)), files={file: _text(config)})


def _pi(endpoint: AgentEndpoint) -> Wiring:
    models = [
        {
            "id": name,
            "name": name,
            "reasoning": False,
            "input": ["text", "image"],
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
            "contextWindow": (endpoint.window if name == endpoint.model else None) or 200_000,
            "maxTokens": 32_000,
        }
        for name in _models(endpoint)
    ]
    provider = {
        "baseUrl": f"{endpoint.url}/v1",
        "apiKey": endpoint.key_or("OPENAI_API_KEY"),
        "api": "openai-completions",
        "models": models,
    }
    script = f'export default (pi) => pi.registerProvider("dragoman", {_text(provider).strip()});\n'
    file = "dragoman.js"
    model = endpoint.model or ""
    args = ("--extension", str(endpoint.folder / file), "--provider", "dragoman", "--model", model)
    return Wiring(args=args, files={file: script})


def _aider(endpoint: AgentEndpoint) -> Wiring:
    return Wiring(
        env={
            "OPENAI_API_BASE": f"{endpoint.url}/v1",
            "OPENAI_API_KEY": endpoint.key_or("OPENAI_API_KEY"),
            # aider uses LiteLLM, which takes the protocol from the prefix.
            "AIDER_MODEL": f"openai/{endpoint.model}",
            # aider knows no prices for the gateway's models, and would warn about each of them.
            "AIDER_SHOW_MODEL_WARNINGS": "false",
        }
    )


def _models(endpoint: AgentEndpoint) -> list[str]:
    """All models, the chosen one first."""
    return list(dict.fromkeys([*([endpoint.model] if endpoint.model else []), *endpoint.models]))


def _entry(
    name: str, title: str, program: str, install: str, wire: Any, model: bool = True, commands: str = ""
) -> Agent:
    return Agent(
        name=name,
        title=title,
        program=program,
        install=install,
        wire=wire,
        needs_model=model,
        commands=frozenset(commands.split()),
    )


_NPM, _PIP = "npm install -g {}", "python -m pip install {}"
_ALL = (
    _entry("claude", "Claude Code", "claude", _NPM.format("@anthropic-ai/claude-code"), _claude, model=False),
    _entry("codex", "Codex", "codex", _NPM.format("@openai/codex"), _codex, model=False),
    _entry("gemini", "Gemini CLI", "gemini", _NPM.format("@google/gemini-cli"), _gemini, model=False),
    _entry(
        "opencode", "opencode", "opencode", _NPM.format("opencode-ai"), _opencode("OPENCODE_CONFIG_CONTENT")
    ),
    _entry("kilo", "Kilo", "kilo", _NPM.format("@kilocode/cli"), _opencode("KILO_CONFIG_CONTENT")),
    _entry("qwen", "Qwen Code", "qwen", _NPM.format("@qwen-code/qwen-code"), _qwen),
    _entry("cline", "Cline", "cline", _NPM.format("cline"), _cline),
    _entry("continue", "Continue", "cn", _NPM.format("@continuedev/cli"), _continue),
    _entry(
        "pi",
        "pi",
        "pi",
        _NPM.format("@mariozechner/pi-coding-agent"),
        _pi,
        commands="install remove uninstall update list config",
    ),
    _entry("aider", "aider", "aider", _PIP.format("aider-chat"), _aider),
)

AGENTS: dict[str, Agent] = {entry.name: entry for entry in _ALL}


def find_agent(name: str) -> Agent:
    found = AGENTS.get(name) or next((c for c in _ALL if name == c.program), None)
    if found is None:
        near = difflib.get_close_matches(name, AGENTS, 1)
        hint = f"did you mean {near[0]}?" if near else f"known agents: {', '.join(AGENTS)}"
        raise DragomanError(f"unknown agent {name}; {hint}")
    return found
