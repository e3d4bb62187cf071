"""Clients that speak Gemini's protocol."""

from typing import Any

from .capture import EMPTY, TASK, Capture, Json, schema

_STREAM = "/v1beta/models/{model}:streamGenerateContent?alt=sse"
_WHOLE = "/v1beta/models/{model}:generateContent"
_GENAI_NODE = "google-genai-sdk/1.30.0 gl-node/v20.20.2"
_GENAI = "google-genai-sdk/3.1.0 gl-python/3.11.7"


def _tools(*names: str, under: str = "parametersJsonSchema") -> list[Json]:
    """The first of the tools runs commands."""
    first: Json = {"name": names[0], "description": "Run a shell command", under: schema("command")}
    others = [{"name": name, "description": "Something else", under: EMPTY} for name in names[1:]]
    return [{"functionDeclarations": [first, *others]}]


def _asked(prompt: str | None = None, *, prompt_role: str | None = None, **more: Any) -> Json:
    contents = [{"role": "user", "parts": [{"text": TASK}]}]
    if prompt is None:
        return {"contents": contents, **more}
    system: Json = {"parts": [{"text": prompt}]}
    if prompt_role is not None:
        system = {"role": prompt_role, **system}
    return {"systemInstruction": system, "contents": contents, **more}


GEMINI: dict[str, Capture] = {
    "gemini-cli": Capture(
        "gemini-cli",
        "gemini",
        _STREAM,
        {
            "user-agent": "GeminiCLI-tui/0.61.0/gemini-3.1-pro-preview (linux; x64; terminal)",
            "x-goog-api-client": _GENAI_NODE,
            "x-goog-api-key": "k",
        },
        _asked(
            "You are Gemini CLI, an autonomous CLI agent.",
            prompt_role="user",
            tools=_tools("run_shell_command", "read_file", "replace", "update_topic"),
            generationConfig={
                "temperature": 1,
                "topP": 0.95,
                "topK": 64,
                "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "HIGH"},
            },
        ),
        "run_shell_command",
        frozenset({"makes ids", "no thoughts"}),
    ),
    "gemini-cli router": Capture(
        "gemini-cli",
        "gemini",
        _WHOLE,
        {"user-agent": "GeminiCLI-tui/0.61.0/gemini-3.5-flash-lite (linux; x64; terminal)"},
        _asked(
            "You are a specialized Task Routing AI.",
            generationConfig={
                "responseMimeType": "application/json",
                "responseJsonSchema": {
                    "type": "OBJECT",
                    "properties": {"reasoning": {"type": "STRING"}, "model_choice": {"type": "STRING"}},
                    "required": ["reasoning", "model_choice"],
                },
                "thinkingConfig": {"thinkingBudget": 0},
            },
        ),
    ),
    "opencode gemini": Capture(
        "opencode",
        "gemini",
        _STREAM,
        {"user-agent": "opencode/1.18.33 runtime/bun/1.3.14", "x-session-affinity": "ses_e1f8"},
        _asked(
            "You are opencode, an interactive CLI tool.",
            tools=_tools("bash", "edit", "glob", "grep", "read", "todowrite", under="parameters"),
            toolConfig={"functionCallingConfig": {"mode": "AUTO"}},
            generationConfig={"thinkingConfig": {"includeThoughts": True}, "maxOutputTokens": 32000},
        ),
        "bash",
        frozenset({"no call ids", "no thoughts"}),
    ),
    "qwen gemini": Capture(
        "qwen-code",
        "gemini",
        _STREAM,
        {
            "user-agent": "QwenCode/0.15.10 (linux; x64)",
            "x-goog-api-client": _GENAI_NODE,
            "x-gemini-api-privileged-user-id": "45bffac6",
        },
        _asked(
            "You are Qwen Code, an interactive CLI agent.",
            tools=_tools("run_shell_command", "agent", "edit", "read_file", "todo_write"),
            generationConfig={"thinkingConfig": {"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}},
        ),
        "run_shell_command",
        frozenset({"makes ids"}),
    ),
    "pi gemini": Capture(
        "pi",
        "gemini",
        _STREAM,
        {"user-agent": _GENAI_NODE, "x-goog-api-client": _GENAI_NODE},
        _asked(
            "You are an assistant operating inside pi, a harness.",
            tools=_tools("bash", "edit", "read", "write"),
            generationConfig={},
        ),
        "bash",
        frozenset({"no call ids"}),
    ),
    "cline gemini": Capture(
        "cline",
        "gemini",
        _STREAM,
        {"user-agent": "ai-sdk/google/4.0.37 runtime/bun/1.3.13"},
        _asked(
            "You are Cline, a careful coding agent.",
            tools=[
                *_tools("run_commands", "read_files", "editor", "submit_and_exit", under="parameters"),
                {"googleSearch": {}},
            ],
            toolConfig={
                "functionCallingConfig": {"mode": "VALIDATED"},
                "includeServerSideToolInvocations": True,
            },
            generationConfig={"responseModalities": ["TEXT"]},
        ),
        "run_commands",
        frozenset({"makes ids", "result as name and content"}),
    ),
    "google-genai": Capture(
        "google-genai",
        "gemini",
        "/v1/models/{model}:generateContent",
        {"user-agent": _GENAI, "x-goog-api-client": _GENAI},
        _asked(
            tools=_tools("bash", under="parameters_json_schema"),
            generationConfig={"thinkingConfig": {"include_thoughts": True, "thinking_budget": 1024}},
        ),
        "bash",
        frozenset({"no call ids", "result as result"}),
    ),
    "pydantic-ai gemini": Capture(
        "pydantic-ai",
        "gemini",
        "/v1/models/{model}:streamGenerateContent?alt=sse",
        {"user-agent": "pydantic-ai/2.62.0", "x-goog-api-client": _GENAI},
        _asked(
            tools=_tools("bash", under="parameters_json_schema"),
            toolConfig={"functionCallingConfig": {"mode": "AUTO"}},
            generationConfig={"response_modalities": ["TEXT"]},
        ),
        "bash",
        frozenset({"makes ids", "result as return value"}),
    ),
    "ai-sdk gemini": Capture(
        "ai-sdk",
        "gemini",
        _WHOLE,
        {
            "user-agent": "ai/6.0.326 ai-sdk/provider-utils/4.0.64 runtime/node.js/v20",
            "sec-fetch-mode": "cors",
        },
        _asked(
            tools=_tools("bash", under="parameters"),
            toolConfig={"functionCallingConfig": {"mode": "AUTO"}},
            generationConfig={},
        ),
        "bash",
        frozenset({"makes ids", "result as name and content"}),
    ),
}
