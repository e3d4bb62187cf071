"""The agents that Dragoman knows how to start: one small function and one line each.

Every agent keeps its own settings, sessions and servers; only where its models are is said anew. How is a
fact about the agent, found by running it.
"""

from __future__ import annotations

import difflib
from typing import Any

import msgspec

from ...model.errors import DragomanError
from .wiring import Client, Place, Wiring

_json = msgspec.json.Encoder().encode


def _text(value: Any) -> str:
    return msgspec.json.format(_json(value), indent=2).decode() + "\n"


def _claude(place: Place) -> Wiring:
    env = {"ANTHROPIC_BASE_URL": place.url}
    elsewhere = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
    if place.key is not None:
        # It asks before it uses a new ANTHROPIC_API_KEY; a token it takes.
        env["ANTHROPIC_AUTH_TOKEN"] = place.key
        elsewhere += ("ANTHROPIC_API_KEY",)
    if place.model:
        names = ("MODEL", "DEFAULT_OPUS_MODEL", "DEFAULT_SONNET_MODEL", "DEFAULT_HAIKU_MODEL")
        env |= {f"ANTHROPIC_{name}": place.model for name in names}
    if place.window:
        env["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] = str(place.window)
    # The `env` of a user's settings outdoes the environment; what --settings names outdoes both.
    file = "settings.json"
    return Wiring(
        env=env,
        without=elsewhere,
        args=("--settings", str(place.folder / file)),
        files={file: _text({"env": env})},
    )


def _codex(place: Place) -> Wiring:
    variable = "DRAGOMAN_KEY" if place.key else "OPENAI_API_KEY"
    said: dict[str, str | int] = {
        "model_provider": "dragoman",
        "model_providers.dragoman.name": "Dragoman",
        "model_providers.dragoman.base_url": f"{place.url}/v1",
        "model_providers.dragoman.wire_api": "responses",
        "model_providers.dragoman.env_key": variable,
    }
    if place.model:
        said["model"] = place.model
    if place.window:
        said["model_context_window"] = place.window
    # A value is TOML, and a JSON string or number is one of TOML's.
    args = tuple(word for key, value in said.items() for word in ("-c", f"{key}={_json(value).decode()}"))
    return Wiring(env={variable: place.key_or("OPENAI_API_KEY")}, args=args)


def _gemini(place: Place) -> Wiring:
    env = {"GOOGLE_GEMINI_BASE_URL": place.url, "GEMINI_API_KEY": place.key_or("GEMINI_API_KEY")}
    elsewhere = ("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GOOGLE_API_KEY")
    if place.model:
        env["GEMINI_MODEL"] = place.model
    own = place.home / ".gemini"
    settings = _user_settings(own / "settings.json")
    security: dict[str, Any] = settings.get("security") or {}
    auth: dict[str, Any] = security.get("auth") or {}
    if auth.get("selectedType") == "gemini-api-key":
        return Wiring(env=env, without=elsewhere)
    # How it logs in is in its settings only, so it gets a home whose settings say so; the rest is the user's.
    auth = {**auth, "selectedType": "gemini-api-key"}
    chosen = {**settings, "security": {**security, "auth": auth}}
    entries = sorted(own.iterdir()) if own.is_dir() else []
    return Wiring(
        env={**env, "GEMINI_CLI_HOME": str(place.folder)},
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
            f"{file} cannot be read ({error}), so its settings would be lost; "
            "choose the Gemini API key in /auth, or take comments out of it"
        ) from None


def _opencode(variable: str) -> Any:
    """opencode and its fork take a whole config from one variable, and merge it over the user's."""

    def wire(place: Place) -> Wiring:
        model = f"dragoman/{place.model}"
        provider: dict[str, Any] = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "Dragoman",
            "options": {"baseURL": f"{place.url}/v1", "apiKey": place.key_or("OPENAI_API_KEY")},
            "models": {name: {} for name in _models(place)},
        }
        config = {"model": model, "small_model": model, "provider": {"dragoman": provider}}
        return Wiring(env={variable: _json(config).decode()})

    return wire


def _qwen(place: Place) -> Wiring:
    env = {
        "OPENAI_BASE_URL": f"{place.url}/v1",
        "OPENAI_API_KEY": place.key_or("OPENAI_API_KEY"),
        "OPENAI_MODEL": place.model or "",
    }
    return Wiring(env=env, args=("--auth-type", "openai"))


def _cline(place: Place) -> Wiring:
    settings = {
        "provider": "openai-compatible",
        "apiKey": place.key_or("OPENAI_API_KEY"),
        "model": place.model,
        "baseUrl": f"{place.url}/v1",
    }
    entry = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    providers = {
        "version": 1,
        "lastUsedProvider": "openai-compatible",
        "modes": {},
        "providers": {"openai-compatible": entry},
    }
    env = {
        "CLINE_PROVIDER_SETTINGS_PATH": str(place.folder / "providers.json"),
        # A hub of the user's that runs already would go on with the user's own providers.
        "CLINE_SESSION_BACKEND_MODE": "local",
    }
    return Wiring(env=env, files={"providers.json": _text(providers)})


def _continue(place: Place) -> Wiring:
    models = [
        {
            "name": name,
            "provider": "openai",
            "model": name,
            "apiBase": f"{place.url}/v1",
            "apiKey": place.key_or("OPENAI_API_KEY"),
            "roles": ["chat", "edit", "apply"],
            "capabilities": ["tool_use"],
        }
        for name in _models(place)
    ]
    config = {"name": "Dragoman", "version": "1.0.0", "schema": "v1", "models": models}
    file = "config.yaml"  # JSON is YAML too
    return Wiring(args=("--config", str(place.folder / file)), files={file: _text(config)})


def _pi(place: Place) -> Wiring:
    models = [
        {
            "id": name,
            "name": name,
            "reasoning": False,
            "input": ["text", "image"],
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
            "contextWindow": (place.window if name == place.model else None) or 200_000,
            "maxTokens": 32_000,
        }
        for name in _models(place)
    ]
    provider = {
        "baseUrl": f"{place.url}/v1",
        "apiKey": place.key_or("OPENAI_API_KEY"),
        "api": "openai-completions",
        "models": models,
    }
    script = f'export default (pi) => pi.registerProvider("dragoman", {_text(provider).strip()});\n'
    file = "dragoman.js"
    model = place.model or ""
    args = ("--extension", str(place.folder / file), "--provider", "dragoman", "--model", model)
    return Wiring(args=args, files={file: script})


def _aider(place: Place) -> Wiring:
    return Wiring(
        env={
            "OPENAI_API_BASE": f"{place.url}/v1",
            "OPENAI_API_KEY": place.key_or("OPENAI_API_KEY"),
            "AIDER_MODEL": f"openai/{place.model}",
            # It knows no prices for models of a gateway, and would ask about each.
            "AIDER_SHOW_MODEL_WARNINGS": "false",
        }
    )


def _models(place: Place) -> list[str]:
    """The model that is wanted first, then all others."""
    return list(dict.fromkeys([*([place.model] if place.model else []), *place.models]))


def _entry(
    name: str, title: str, program: str, install: str, wire: Any, model: bool = True, commands: str = ""
) -> Client:
    return Client(
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

CLIENTS: dict[str, Client] = {entry.name: entry for entry in _ALL}


def client(name: str) -> Client:
    """The agent of that name, or of that program."""
    found = CLIENTS.get(name) or next((c for c in _ALL if name == c.program), None)
    if found is None:
        near = difflib.get_close_matches(name, CLIENTS, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(CLIENTS)}"
        raise DragomanError(f"no agent is called {name}; {hint}")
    return found
