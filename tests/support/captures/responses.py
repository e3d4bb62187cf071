"""Clients that speak Responses."""

from typing import Any

from .capture import EMPTY, TASK, Capture, Json, schema, stainless

_PATH = "/v1/responses"
_GRAMMAR: Json = {
    "type": "grammar",
    "syntax": "lark",
    "definition": 'start: begin_patch hunk+ end_patch\nbegin_patch: "*** Begin Patch" LF\n',
}
_CODEX_HEADERS = {
    "user-agent": "codex_exec/0.166.0 (Debian 12.0.0; x86_64) xterm (codex_exec; 0.166.0)",
    "originator": "codex_exec",
    "session-id": "01a1e075",
    "thread-id": "01a1e075",
    "x-client-request-id": "01a1e075",
    "x-codex-window-id": "01a1e075:0",
    "x-codex-turn-metadata": '{"session_id":"01a1e075"}',
    "x-codex-beta-features": "remote_compaction_v2",
    "authorization": "Bearer k",
    "accept": "text/event-stream",
}


def _function(name: str, parameters: Json, **more: Any) -> Json:
    described = {"name": name, "description": f"Runs {name}", "parameters": parameters, "strict": False}
    return {"type": "function", **described, **more}


def _tools(*names: str, member: str = "command", **more: Any) -> list[Json]:
    """The first of the tools runs commands."""
    first = _function(names[0], schema(member), description="Run a shell command", **more)
    return [first, *(_function(name, EMPTY, **more) for name in names[1:])]


def _message(role: str, text: str, id: str) -> Json:
    return {
        "type": "message",
        "id": f"msg_{id}",
        "role": role,
        "content": [{"type": "input_text", "text": text}],
    }


_CODEX: Json = {
    "input": [
        _message("developer", "You are a coding agent running in the Codex CLI.", "1"),
        _message("user", "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>", "2"),
        _message("user", TASK, "3"),
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "01a1e075",
    "client_metadata": {"thread_id": "01a1e075", "x-codex-turn-metadata": "{}"},
}
_AGENTS = {
    "type": "namespace",
    "name": "multi_agent_v1",
    "description": "Tools for spawning and managing sub-agents.",
    "tools": [_function("spawn_agent", schema("message")), _function("wait_agent", EMPTY)],
}
_CODE_MODE: Json = {
    **_CODEX,
    "parallel_tool_calls": False,
    "reasoning": {"effort": "medium", "context": "all_turns"},
    "text": {"verbosity": "low"},
    "input": [
        {
            "type": "additional_tools",
            "id": "at_1",
            "role": "developer",
            "tools": [
                {
                    "type": "namespace",
                    "name": "functions",
                    "description": "",
                    "tools": [
                        {
                            "type": "custom",
                            "name": "exec",
                            "description": "Run JavaScript code",
                            "format": _GRAMMAR,
                        },
                        _function("wait", EMPTY),
                    ],
                },
                {
                    "type": "namespace",
                    "name": "clock",
                    "description": "",
                    "tools": [_function("wait", EMPTY)],
                },
            ],
        },
        _message("developer", "You are Codex, an agent based on GPT-6.", "1"),
        _message("user", "Please exec this", "2"),
    ],
}


def _asked(prompt: str | None = None, *, parts: bool = False, **more: Any) -> Json:
    content = [{"type": "input_text", "text": TASK}] if parts else TASK
    said = [{"role": "system", "content": prompt}] if prompt is not None else []
    return {"input": [*said, {"role": "user", "content": content}], **more}


RESPONSES: dict[str, Capture] = {
    "codex": Capture(
        "codex",
        "openai-responses",
        _PATH,
        _CODEX_HEADERS,
        {
            **_CODEX,
            "tools": [
                *_tools("exec_command", "write_stdin", "view_image", member="cmd"),
                _AGENTS,
                {"type": "web_search", "external_web_access": True},
            ],
        },
        "exec_command",
        frozenset({"ids", "empty reasoning content"}),
    ),
    "codex patching": Capture(
        "codex",
        "openai-responses",
        _PATH,
        _CODEX_HEADERS,
        {
            **_CODEX,
            "input": [*_CODEX["input"][:2], _message("user", "Use apply_patch to edit the file", "3")],
            "tools": [
                *_tools("exec_command", "write_stdin", member="cmd"),
                {"type": "custom", "name": "apply_patch", "description": "Edits files", "format": _GRAMMAR},
                {
                    "type": "web_search",
                    "external_web_access": True,
                    "search_content_types": ["text", "image"],
                },
            ],
            "text": {"verbosity": "low"},
        },
        "apply_patch",
        frozenset({"ids", "empty reasoning content"}),
    ),
    "codex code mode": Capture(
        "codex",
        "openai-responses",
        _PATH,
        {**_CODEX_HEADERS, "x-openai-internal-codex-responses-lite": "true"},
        _CODE_MODE,
        "exec",
        frozenset({"ids", "empty reasoning content", "result in parts"}),
    ),
    "opencode responses": Capture(
        "opencode",
        "openai-responses",
        _PATH,
        {"user-agent": "opencode/1.18.33 runtime/bun/1.3.14", "x-session-affinity": "ses_e1f8"},
        _asked(
            "You are opencode, an interactive CLI tool.",
            parts=True,
            max_output_tokens=32000,
            store=False,
            prompt_cache_key="ses_e1f8",
            include=["reasoning.encrypted_content"],
            tools=_tools("bash", "edit", "glob", "grep", "read", "todowrite"),
            tool_choice="auto",
            stream=True,
        ),
        "bash",
        frozenset({"no item ids"}),
    ),
    "cline responses": Capture(
        "cline",
        "openai-responses",
        _PATH,
        {"user-agent": "ai-sdk/openai/4.0.37 runtime/bun/1.3.13"},
        _asked(
            "You are Cline, a careful coding agent.",
            parts=True,
            truncation="auto",
            include=["web_search_call.action.sources"],
            tools=[
                *_tools("run_commands", "read_files", "editor", "submit_and_exit"),
                {"type": "web_search"},
                {"type": "image_generation", "output_format": "png"},
            ],
            tool_choice="auto",
            stream=True,
        ),
        "run_commands",
        frozenset({"no item ids"}),
    ),
    "pi responses": Capture(
        "pi",
        "openai-responses",
        _PATH,
        stainless("OpenAI/JS 6.26.0", "js", session_id="01a1e076"),
        _asked(
            "You are an assistant operating inside pi, a harness.",
            parts=True,
            store=False,
            max_output_tokens=16384,
            prompt_cache_key="01a1e076",
            tools=_tools("bash", "edit", "read", "write"),
            stream=True,
        ),
        "bash",
    ),
    "openai-agents responses": Capture(
        "openai-agents",
        "openai-responses",
        _PATH,
        stainless("Agents/Python 0.24.0", "python"),
        _asked(
            instructions="You help.",
            include=[],
            reasoning={"effort": "low"},
            text={"verbosity": "low"},
            tools=_tools("bash"),
        ),
        "bash",
    ),
    "langchain responses": Capture(
        "langchain",
        "openai-responses",
        _PATH,
        stainless("OpenAI/Python 3.49.0", "python", x_stainless_raw_response="true"),
        {
            "stream": False,
            "input": [
                {"type": "message", "role": "system", "content": "You help."},
                {"type": "message", "role": "user", "content": TASK},
            ],
            "tools": _tools("bash"),
        },
        "bash",
    ),
    "pydantic-ai responses": Capture(
        "pydantic-ai",
        "openai-responses",
        _PATH,
        stainless("pydantic-ai/2.62.0", "python"),
        _asked(instructions="You help.", stream=False, tool_choice="auto", tools=_tools("bash")),
        "bash",
        frozenset({"no reasoning"}),
    ),
    "openai responses": Capture(
        "openai",
        "openai-responses",
        _PATH,
        stainless("OpenAI/Python 3.49.0", "python"),
        {"input": TASK, "tools": _tools("bash"), "stream": True},
        "bash",
    ),
    "ai-sdk responses": Capture(
        "ai-sdk",
        "openai-responses",
        _PATH,
        {
            "user-agent": "ai/6.0.326 ai-sdk/provider-utils/4.0.65 runtime/node.js/v20",
            "sec-fetch-mode": "cors",
        },
        _asked(parts=True, tools=_tools("bash"), tool_choice="auto"),
        "bash",
        frozenset({"no item ids"}),
    ),
}
