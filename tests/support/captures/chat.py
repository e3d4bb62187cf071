"""Clients that speak Chat Completions."""

from typing import Any

from .capture import EMPTY, TASK, Capture, Json, schema, stainless

_PATH = "/v1/chat/completions"
_USAGE: Json = {"stream": True, "stream_options": {"include_usage": True}}


def _tools(*names: str, **more: Any) -> list[Json]:
    """The first of the tools runs commands."""
    first: Json = {"name": names[0], "description": "Run a shell command", "parameters": schema("command")}
    others = [{"name": name, "description": "Something else", "parameters": EMPTY} for name in names[1:]]
    return [{"type": "function", "function": {**function, **more}} for function in (first, *others)]


def _asked(prompt: str | None = None, *, role: str = "system", parts: bool = False, **more: Any) -> Json:
    content = [{"type": "text", "text": TASK}] if parts else TASK
    said = [{"role": role, "content": prompt}] if prompt is not None else []
    return {"messages": [*said, {"role": "user", "content": content}], **more}


CHAT: dict[str, Capture] = {
    "opencode chat": Capture(
        "opencode",
        "openai-chat",
        _PATH,
        {
            "user-agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14",
            "x-session-affinity": "ses_e1f8a40ddffeBQyLjeUM9uaFeZ",
            "x-session-id": "ses_e1f8a40ddffeBQyLjeUM9uaFeZ",
        },
        _asked(
            "You are opencode, an interactive CLI tool.",
            max_tokens=32000,
            tools=_tools("bash", "edit", "glob", "grep", "read", "task", "todowrite"),
            tool_choice="auto",
            **_USAGE,
        ),
        "bash",
    ),
    "opencode title": Capture(
        "opencode",
        "openai-chat",
        _PATH,
        {"user-agent": "opencode/1.18.33 runtime/bun/1.3.14", "x-session-affinity": "ses_e1f8"},
        _asked("You are a title generator.", max_tokens=32000, reasoning_effort="low", **_USAGE),
    ),
    "kilo chat": Capture(
        "kilo",
        "openai-chat",
        _PATH,
        {
            "user-agent": "Kilo-Code/7.7.7 ai-sdk/provider-utils/4.0.27 runtime/bun/1.3.14",
            "http-referer": "https://kilocode.ai",
            "x-title": "Kilo Code",
            "x-session-affinity": "ses_e1f89fb59ffeERg7JbqvHZ7TX1",
        },
        _asked(
            "You are Kilo, a highly skilled software engineer.",
            max_tokens=32000,
            tools=_tools("bash", "edit", "glob", "grep", "kilo_local_recall", "read", "todowrite"),
            tool_choice="auto",
            **_USAGE,
        ),
        "bash",
    ),
    "qwen chat": Capture(
        "qwen-code",
        "openai-chat",
        _PATH,
        stainless("QwenCode/0.24.4 (linux; x64)", "js"),
        _asked(
            "You are Qwen Code, an interactive CLI agent.",
            parts=True,
            max_tokens=8192,
            tools=_tools("run_shell_command", "agent", "edit", "glob", "read_file", "todo_write"),
            **_USAGE,
        ),
        "run_shell_command",
        frozenset({"result in parts"}),
    ),
    "pi chat": Capture(
        "pi",
        "openai-chat",
        _PATH,
        stainless("OpenAI/JS 6.26.0", "js"),
        _asked(
            "You are an assistant operating inside pi, a harness.",
            role="developer",
            max_completion_tokens=16384,
            reasoning_effort="medium",
            store=False,
            tools=_tools("bash", "edit", "read", "write", strict=False),
            **_USAGE,
        ),
        "bash",
    ),
    "continue chat": Capture(
        "continue",
        "openai-chat",
        _PATH,
        stainless("ls/JS 5.23.2", "js"),
        _asked(
            "You are an agent in the Continue CLI.",
            tools=_tools("Bash", "Read", "Write", "Edit", "List", "Fetch", "Checklist", "Exit"),
            **_USAGE,
        ),
        "Bash",
    ),
    "cline chat": Capture(
        "cline",
        "openai-chat",
        _PATH,
        {"user-agent": "ai-sdk/openai-compatible/3.0.37 runtime/bun/1.3.13"},
        _asked(
            "You are Cline, a careful coding agent.",
            tools=_tools("run_commands", "read_files", "editor", "submit_and_exit"),
            tool_choice="auto",
            **_USAGE,
        ),
        "run_commands",
    ),
    "cursor chat": Capture(
        "cursor",
        "openai-chat",
        _PATH,
        {"user-agent": "undici"},
        _asked(
            "You are an AI coding assistant. You operate in Cursor.",
            tools=_tools("Shell", "Read", "StrReplace", "Delete", "Grep"),
            **_USAGE,
        ),
        "Shell",
    ),
    "aider chat": Capture(
        "aider",
        "openai-chat",
        _PATH,
        stainless("OpenAI/Python 2.20.0", "python", x_stainless_raw_response="true"),
        {
            "messages": [
                {"role": "system", "content": "Act as an expert software developer."},
                {"role": "user", "content": "Change get_factorial()"},
                {"role": "assistant", "content": "<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE"},
                {"role": "user", "content": "I switched to a new code base."},
                {"role": "assistant", "content": "Ok."},
                {"role": "user", "content": TASK},
            ],
            "temperature": 0,
            "stream": True,
        },
    ),
    "langchain chat": Capture(
        "langchain",
        "openai-chat",
        _PATH,
        stainless("OpenAI/Python 3.49.0", "python", x_stainless_raw_response="true"),
        _asked(stream=False, tools=_tools("bash")),
        "bash",
    ),
    "openai-agents chat": Capture(
        "openai-agents",
        "openai-chat",
        _PATH,
        stainless("Agents/Python 0.24.0", "python"),
        _asked("You help.", tools=_tools("bash", strict=True), stream=True),
        "bash",
    ),
    "pydantic-ai chat": Capture(
        "pydantic-ai",
        "openai-chat",
        _PATH,
        stainless("pydantic-ai/2.62.0", "python"),
        _asked(stream=False, tool_choice="auto", tools=_tools("bash", strict=True)),
        "bash",
    ),
    "openai chat": Capture(
        "openai",
        "openai-chat",
        _PATH,
        stainless("OpenAI/Python 3.49.0", "python", x_stainless_read_timeout="600"),
        _asked(stream=True, tools=_tools("bash")),
        "bash",
        frozenset({"helper's call"}),
    ),
    "ai-sdk chat": Capture(
        "ai-sdk",
        "openai-chat",
        _PATH,
        {
            "user-agent": "ai/6.0.326 ai-sdk/provider-utils/4.0.65 runtime/node.js/v20",
            "sec-fetch-mode": "cors",
        },
        _asked(tools=_tools("bash"), tool_choice="auto"),
        "bash",
    ),
}
