"""Clients that speak Anthropic's Messages."""

from typing import Any

from .capture import EMPTY, TASK, Capture, Json, schema, stainless

_MARK: Json = {"cache_control": {"type": "ephemeral"}}


def _anthropic(*tools: str, member: str = "command", **more: Any) -> list[Json]:
    """The first of the tools runs commands."""
    described = [{"name": tools[0], "description": "Run a shell command", "input_schema": schema(member)}]
    others = [{"name": name, "description": "Something else", "input_schema": EMPTY} for name in tools[1:]]
    return [{**tool, **more} for tool in (*described, *others)]


_CLAUDE_TOOLS = [
    *_anthropic("Bash", "Agent", "Edit", "Read", "ToolSearch", "Write"),
    {
        "name": "DeferredToolPlaceholder",
        "description": "Keeps loading on.",
        "input_schema": EMPTY,
        "defer_loading": True,
    },
]
_CLAUDE_HEADERS = {
    **stainless("claude-cli/2.1.325 (external, sdk-cli)", "js", x_stainless_timeout="600"),
    "x-claude-code-session-id": "71525cfc-b769-4cd3-9268-8f274a26b035",
    "x-app": "cli",
    "x-api-key": "k",
    "anthropic-version": "2023-06-01",
    "anthropic-dangerous-direct-browser-access": "true",
    "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27",
}
_CLAUDE_CODE: Json = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 32000,
    "stream": True,
    "system": [
        {
            "type": "text",
            "text": "x-anthropic-billing-header: cc_version=2.1.325.b55; cc_entrypoint=sdk-cli;",
        },
        {"type": "text", "text": "You are a Claude agent.", **_MARK},
    ],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<system-reminder>\nToday is Monday.\n</system-reminder>"},
                {"type": "text", "text": TASK, **_MARK},
            ],
        }
    ],
    "tools": _CLAUDE_TOOLS,
    "metadata": {"user_id": '{"device_id":"d0","account_uuid":"","session_id":"5e"}'},
    "thinking": {"type": "enabled", "budget_tokens": 31999, "display": "omitted"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
}
_CLAUDE_OPUS: Json = {
    **_CLAUDE_CODE,
    "max_tokens": 128000,
    "messages": [
        *_CLAUDE_CODE["messages"],
        {
            "role": "system",
            "content": [{"type": "text", "text": "# Environment\nlinux", **_MARK}],
            "output_config": {"effort": "medium"},
        },
    ],
    "thinking": {"type": "adaptive", "display": "omitted"},
    "output_config": {"effort": "medium"},
}
_CLAUDE_TITLE: Json = {
    "model": "claude-haiku-4-5",
    "max_tokens": 32000,
    "stream": True,
    "system": _CLAUDE_CODE["system"],
    "messages": [{"role": "user", "content": [{"type": "text", "text": "Name this session: run ls"}]}],
    "tools": [],
    "thinking": {"type": "disabled"},
    "temperature": 1,
    "output_config": {
        "format": {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "properties": {"title": {"type": "string"}},
                "required": ["title"],
                "additionalProperties": False,
            },
        }
    },
}
_BETA = "/v1/messages?beta=true"


def _messages(**more: Any) -> Json:
    return {"max_tokens": 4096, "messages": [{"role": "user", "content": TASK}], **more}


ANTHROPIC: dict[str, Capture] = {
    "claude-code": Capture(
        "claude-code",
        "anthropic",
        _BETA,
        _CLAUDE_HEADERS,
        _CLAUDE_CODE,
        "Bash",
        frozenset({"reminder in result"}),
    ),
    "claude-code opus": Capture(
        "claude-code",
        "anthropic",
        _BETA,
        {
            **_CLAUDE_HEADERS,
            "anthropic-beta": "claude-code-20250219,mid-conversation-tool-changes-2026-07-01",
        },
        _CLAUDE_OPUS,
        "Bash",
        frozenset({"system after result", "marked result"}),
    ),
    "claude-code title": Capture("claude-code", "anthropic", _BETA, _CLAUDE_HEADERS, _CLAUDE_TITLE),
    "claude-agent-sdk": Capture(
        "claude-agent-sdk",
        "anthropic",
        _BETA,
        {**_CLAUDE_HEADERS, "user-agent": "claude-cli/2.1.325 (external, sdk-py, agent-sdk/0.2.182)"},
        {
            **_CLAUDE_CODE,
            "system": "x-anthropic-billing-header: cc_version=2.1.325.4fb; cc_entrypoint=sdk-py;",
        },
        "Bash",
    ),
    "opencode anthropic": Capture(
        "opencode",
        "anthropic",
        "/v1/messages",
        {
            "user-agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.46 runtime/bun/1.3.14",
            "x-session-affinity": "ses_e1f8a2d4bffe7IHGG6GRRWxnKq",
            "x-session-id": "ses_e1f8a2d4bffe7IHGG6GRRWxnKq",
            "x-api-key": "k",
            "anthropic-beta": "structured-outputs-2025-11-13",
        },
        _messages(
            system=[{"type": "text", "text": "You are opencode, an interactive CLI tool.", **_MARK}],
            tools=_anthropic(
                "bash", "edit", "glob", "grep", "read", "task", "todowrite", eager_input_streaming=True
            ),
            tool_choice={"type": "auto"},
            stream=True,
        ),
        "bash",
        frozenset({"marked call", "marked result"}),
    ),
    "pi anthropic": Capture(
        "pi",
        "anthropic",
        "/v1/messages",
        {
            **stainless("Anthropic/JS 0.91.1", "js"),
            "anthropic-beta": "interleaved-thinking-2025-05-14",
            "anthropic-dangerous-direct-browser-access": "true",
        },
        _messages(
            system=[
                {"type": "text", "text": "You are an assistant operating inside pi, a harness.", **_MARK}
            ],
            tools=_anthropic("bash", "edit", "read", "write", eager_input_streaming=True, **_MARK),
            stream=True,
        ),
        "bash",
        frozenset({"no reasoning"}),
    ),
    "cline anthropic": Capture(
        "cline",
        "anthropic",
        "/v1/messages",
        {"user-agent": "ai-sdk/anthropic/4.0.37 runtime/bun/1.3.13", "x-api-key": "k"},
        _messages(
            system=[{"type": "text", "text": "You are Cline, a careful coding agent."}],
            tools=[
                *_anthropic("run_commands", "read_files", "editor", "submit_and_exit"),
                {"type": "web_search_20250305", "name": "web_search"},
            ],
            stream=True,
        ),
        "run_commands",
    ),
    "continue anthropic": Capture(
        "continue",
        "anthropic",
        "/v1/messages",
        {"user-agent": "node-fetch", "anthropic-beta": "prompt-caching-2024-07-31", "x-api-key": "k"},
        _messages(
            system=[{"type": "text", "text": "You are an agent in the Continue CLI.", **_MARK}],
            tools=_anthropic("Bash", "Read", "Write", "Edit", "List", "Fetch", "Checklist", "Exit", **_MARK),
            stream=True,
        ),
        "Bash",
        frozenset({"no reasoning"}),
    ),
    "qwen anthropic": Capture(
        "qwen-code",
        "anthropic",
        "/v1/messages",
        # A wrong user agent.
        {
            **stainless("claude-cli/0.24.4 (external, cli)", "js", authorization="Bearer k", x_app="cli"),
            "anthropic-beta": "interleaved-thinking-2025-05-14",
        },
        _messages(
            system=[{"type": "text", "text": "You are Qwen Code, an interactive CLI agent.", **_MARK}],
            tools=_anthropic(
                "run_shell_command", "agent", "edit", "glob", "read_file", "todo_write", **_MARK
            ),
            temperature=1,
            thinking={"type": "enabled", "budget_tokens": 2048},
            stream=True,
        ),
        "run_shell_command",
    ),
    "langchain anthropic": Capture(
        "langchain",
        "anthropic",
        "/v1/messages",
        stainless(
            "langchain-anthropic/1.7.7",
            "python",
            x_stainless_timeout="NOT_GIVEN",
            x_stainless_raw_response="raw",
            authorization="Bearer k",
        ),
        _messages(system="You help.", tools=_anthropic("bash")),
        "bash",
    ),
    "pydantic-ai anthropic": Capture(
        "pydantic-ai",
        "anthropic",
        "/v1/messages",
        stainless("pydantic-ai/2.62.0", "python", authorization="Bearer k"),
        {
            **_messages(tools=_anthropic("bash"), stream=False, tool_choice={"type": "auto"}),
            "messages": [{"role": "user", "content": [{"text": TASK, "type": "text"}]}],
        },
        "bash",
        frozenset({"result in parts"}),
    ),
    "anthropic": Capture(
        "anthropic",
        "anthropic",
        "/v1/messages",
        stainless("AsyncAnthropic/Python 2.8.0", "python", x_stainless_timeout="NOT_GIVEN"),
        _messages(tools=_anthropic("bash"), stream=True),
        "bash",
    ),
    "ai-sdk anthropic": Capture(
        "ai-sdk",
        "anthropic",
        "/v1/messages",
        {
            "user-agent": "ai/6.0.326 ai-sdk/provider-utils/4.0.64 runtime/node.js/v20",
            "sec-fetch-mode": "cors",
        },
        _messages(tools=_anthropic("bash"), tool_choice={"type": "auto"}),
        "bash",
    ),
    "aider anthropic": Capture(
        "aider",
        "anthropic",
        "/v1/messages",
        {"user-agent": "litellm/1.81.10", "x-api-key": "k"},
        _messages(
            system=[{"type": "text", "text": "Act as an expert software developer."}],
            temperature=0,
            stream=True,
        ),
    ),
}
