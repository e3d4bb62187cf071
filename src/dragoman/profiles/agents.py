"""The coding agents: one value each. The signs come from recorded requests of each agent.

The tools here only detect the agent. The mistakes that models make in a tool's arguments are in
`tools/rules/tables.py`, by the tool's name and for every client.
"""

from __future__ import annotations

from .profile import Background, Profile, Signs

ALL_FOUR = ("anthropic", "openai-chat", "openai-responses", "gemini")

# Qwen Code also sends a `claude-cli/` user agent. So no sign is enough by itself, and `detection.py` adds
# them up.
_CLAUDE_HEADERS = {
    "x-claude-code-session-id": ("",),
    "anthropic-beta": ("claude-code-",),
    "x-app": ("cli",),
}
_CLAUDE_FIELDS = frozenset({"context_management"})
_CLAUDE_TOOLS = frozenset(
    {
        "Agent", "Bash", "Edit", "ExitPlanMode", "Glob", "Grep", "NotebookEdit", "Read", "Skill", "Task",
        "TodoWrite", "ToolSearch", "WebFetch", "WebSearch", "Write",
    }
)  # fmt: skip

# Its titles have a schema. Older versions, and its summaries of web pages, use the small model without tools.
# The check of the quota asks for one token.
_CLAUDE_BACKGROUND = Background(models=("haiku",), has_schema=True, max_tokens=1)

CLAUDE_CODE = Profile(
    name="claude-code",
    title="Claude Code",
    protocols=("anthropic",),
    signs=Signs(
        headers={"user-agent": ("claude-cli/",), **_CLAUDE_HEADERS},
        prompts=("x-anthropic-billing-header: cc_version", "You are Claude Code"),
        fields=_CLAUDE_FIELDS,
        tools=_CLAUDE_TOOLS,
    ),
    background=_CLAUDE_BACKGROUND,
    notes=(
        "Sends `HEAD /` or `HEAD /api/hello` before its first request.",
        "Puts `system` entries between its messages, each with its own effort.",
        "Defers tools (`defer_loading`) until its `ToolSearch` finds them.",
    ),
)

CLAUDE_AGENT_SDK = Profile(
    name="claude-agent-sdk",
    title="Claude Agent SDK",
    protocols=("anthropic",),
    signs=Signs(
        headers={"user-agent": ("agent-sdk/",), **_CLAUDE_HEADERS},
        prompts=("cc_entrypoint=sdk-py", "cc_entrypoint=sdk-ts"),
        fields=_CLAUDE_FIELDS,
        tools=_CLAUDE_TOOLS,
    ),
    background=_CLAUDE_BACKGROUND,
    notes=("Runs Claude Code, so its notes apply here too.",),
)

CODEX = Profile(
    name="codex",
    title="Codex",
    protocols=("openai-responses",),
    signs=Signs(
        headers={
            "user-agent": ("codex_", "codex-"),
            "originator": ("codex",),
            "x-codex-window-id": ("",),
            "x-codex-turn-metadata": ("",),
        },
        prompts=("You are Codex", "running in the Codex CLI"),
        fields=frozenset({"client_metadata", "prompt_cache_key"}),
        tools=frozenset(
            {
                "apply_patch",
                "create_goal",
                "exec_command",
                "get_goal",
                "request_user_input",
                "spawn_agent",
                "update_goal",
                "update_plan",
                "view_image",
                "wait_agent",
                "write_stdin",
            }
        ),
    ),
    # Codex disconnects after five minutes without an event, and an SSE comment does not count as an event.
    # OpenAI sends this keepalive event, too.
    keepalives={"openai-responses": b'event: keepalive\ndata: {"type":"keepalive"}\n\n'},
    notes=(
        "Only events reset its idle timeout, so its keepalive is an event, not a comment.",
        "Its built-in provider uses a WebSocket, and falls back to POST after a 426.",
        "Its tools have namespaces, are freeform with a grammar, or come in the input (`additional_tools`).",
    ),
)

CURSOR = Profile(
    name="cursor",
    title="Cursor",
    protocols=("openai-chat", "cursor"),
    signs=Signs(
        paths=("/cursor/",),
        prompts=("You operate in Cursor",),
        tools=frozenset(
            {
                "ApplyPatch", "ReadLints", "SemanticSearch", "Shell", "StrReplace", "codebase_search",
                "delete_file", "edit_file", "file_search", "glob_file_search", "run_terminal_cmd",
                "run_terminal_command", "search_replace",
            }
        ),
    ),
    # Cursor took the first fragment for all arguments: "Add OpenRouter Example" became "A".
    arguments="whole",
    notes=(
        "May run a call with incomplete arguments, so it gets them in one piece.",
        "Sends its requests from Cursor's servers, so the gateway needs an address that they can reach.",
    ),
)  # fmt: skip

GEMINI_CLI = Profile(
    name="gemini-cli",
    title="Gemini CLI",
    protocols=("gemini",),
    signs=Signs(
        headers={"user-agent": ("GeminiCLI",)},
        prompts=("You are Gemini CLI", "Task Routing AI"),
        tools=frozenset(
            {
                "activate_skill", "enter_plan_mode", "google_web_search", "invoke_agent",
                "read_background_output", "replace", "run_shell_command", "save_memory", "update_topic",
                "write_todos",
            }
        ),
    ),
    background=Background(prompts=("Task Routing AI",), has_schema=True),
    notes=("May first ask a small model which model to use, with a schema whose types are in capitals.",),
)  # fmt: skip

_OPENCODE_TOOLS = frozenset(
    {"bash", "edit", "glob", "grep", "read", "skill", "task", "todowrite", "webfetch", "write"}
)

# The prompt of its summaries is another one: they are long and need a good model.
_OPENCODE_BACKGROUND = Background(prompts=("title generator",))

OPENCODE = Profile(
    name="opencode",
    title="opencode",
    protocols=ALL_FOUR,
    signs=Signs(
        headers={"user-agent": ("opencode/",), "x-session-affinity": ("ses_",)},
        prompts=("You are opencode",),
        tools=_OPENCODE_TOOLS,
    ),
    background=_OPENCODE_BACKGROUND,
    notes=("First requests a title, without tools.", "Puts cache marks on calls."),
)

KILO = Profile(
    name="kilo",
    title="Kilo Code",
    protocols=ALL_FOUR,
    signs=Signs(
        headers={
            "user-agent": ("Kilo-Code/",),
            "x-title": ("Kilo",),
            "http-referer": ("kilo",),
            "x-session-affinity": ("ses_",),
        },
        prompts=("You are Kilo",),
        tools=_OPENCODE_TOOLS | {"kilo_local_recall"},
    ),
    background=_OPENCODE_BACKGROUND,
    notes=("A fork of opencode.",),
)

QWEN_CODE = Profile(
    name="qwen-code",
    title="Qwen Code",
    protocols=("openai-chat", "anthropic", "gemini"),
    signs=Signs(
        headers={"user-agent": ("QwenCode/",)},
        prompts=("You are Qwen Code",),
        tools=frozenset(
            {
                "agent", "list_directory", "monitor", "run_shell_command", "send_message", "task_stop",
                "todo_write", "tool_search",
            }
        ),
    ),
    notes=(
        "Calls itself `claude-cli` in Anthropic's protocol.",
        "Sends tool results as a list of parts, even in Chat.",
    ),
)  # fmt: skip

CLINE = Profile(
    name="cline",
    title="Cline",
    protocols=ALL_FOUR,
    signs=Signs(
        headers={"x-title": ("Cline",), "http-referer": ("cline",)},
        prompts=("You are Cline",),
        tools=frozenset(
            {
                "ask_followup_question", "attempt_completion", "editor", "execute_command", "read_files",
                "replace_in_file", "run_commands", "submit_and_exit", "write_to_file",
            }
        ),
    ),
    notes=("Also offers the provider's own search tool.",),
)  # fmt: skip

CONTINUE = Profile(
    name="continue",
    title="Continue",
    protocols=("openai-chat", "anthropic"),
    signs=Signs(
        prompts=("in the Continue CLI",),
        tools=frozenset(
            {"AskQuestion", "Bash", "CheckBackgroundJob", "Checklist", "Exit", "Fetch", "List", "Skills"}
        ),
    ),
)

PI = Profile(
    name="pi",
    title="pi",
    protocols=ALL_FOUR,
    signs=Signs(
        prompts=("operating inside pi",),
        tools=frozenset({"bash", "edit", "read", "write"}),
    ),
)

AIDER = Profile(
    name="aider",
    title="aider",
    protocols=("openai-chat", "anthropic"),
    signs=Signs(
        headers={"user-agent": ("litellm/",), "x-stainless-raw-response": ("true",)},
        prompts=(
            "Act as an expert software developer",
            "Act as an expert code analyst",
            "Act as an expert architect engineer",
        ),
    ),
    notes=("Uses no tools: its edits are in the text.", "Does not request usage in streams."),
)

AGENTS: tuple[Profile, ...] = (
    CLAUDE_AGENT_SDK,  # before Claude Code: both prompts start with the same words
    CLAUDE_CODE,
    CODEX,
    CURSOR,
    GEMINI_CLI,
    OPENCODE,
    KILO,
    QWEN_CODE,
    CLINE,
    CONTINUE,
    PI,
    AIDER,
)
"""If two profiles have the same score, the first one wins."""
