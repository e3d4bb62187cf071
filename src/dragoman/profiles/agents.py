"""The coding agents: one value each, with the signs that were seen when they were run.

The tools are the ones an agent is told by. What models get wrong in their arguments is in
`tools/rules/tables.py`, by the tool's name and for every client: there the client's own schema decides.
"""

from __future__ import annotations

from .profile import Profile, Signs

ALL_FOUR = ("anthropic", "openai-chat", "openai-responses", "gemini")

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
    notes=(
        "Asks `HEAD /` or `HEAD /api/hello` first.",
        "Puts `system` entries between its messages, with an effort of their own.",
        "Holds back tools (`defer_loading`) until its `ToolSearch` finds them.",
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
    notes=("Runs Claude Code: all that is said of it holds.",),
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
    # It gives up after five minutes without an event, and a comment is none. OpenAI sends these too.
    keepalives={"openai-responses": b'event: keepalive\ndata: {"type":"keepalive"}\n\n'},
    notes=(
        "Counts only events against its idle timeout, so its keepalive is an event, not a comment.",
        "Its own provider asks over a WebSocket, and posts where that is answered with 426.",
        "Tools come in namespaces, freeform with a grammar, or inside the conversation (`additional_tools`).",
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
    arguments="whole",
    notes=(
        "Reads arguments before they are complete, and then runs what it has: they go out in one piece.",
        "Asks from its maker's servers, so the gateway needs an address they can reach.",
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
    notes=("May ask a small model first which model to use, by a schema with types in capitals.",),
)  # fmt: skip

_OPENCODE_TOOLS = frozenset(
    {"bash", "edit", "glob", "grep", "read", "skill", "task", "todowrite", "webfetch", "write"}
)

OPENCODE = Profile(
    name="opencode",
    title="opencode",
    protocols=ALL_FOUR,
    signs=Signs(
        headers={"user-agent": ("opencode/",), "x-session-affinity": ("ses_",)},
        prompts=("You are opencode",),
        tools=_OPENCODE_TOOLS,
    ),
    notes=("Asks for a title first, without tools.", "Puts cache marks on calls."),
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
    notes=("Made from opencode.",),
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
        "Calls itself `claude-cli` where it speaks Anthropic's protocol.",
        "Sends a tool's result as a list of parts, in Chat too.",
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
    notes=("Offers the provider's own search beside its tools.",),
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
    notes=("Uses no tools: its edits are in the text.", "Does not ask for usage in streams."),
)

AGENTS: tuple[Profile, ...] = (
    CLAUDE_AGENT_SDK,  # before Claude Code, whose prompt begins like its own
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
"""Where two have equally many signs, the first."""
