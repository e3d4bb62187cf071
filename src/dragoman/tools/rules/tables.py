"""Data about the tools of known agents, and about the names that models use for their members.

Nothing here overrides a schema: an entry applies only if the client's schema declares the member that it
leads to, and the call does not have that member.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple


class ToolFamily(NamedTuple):
    """Tools of different agents with the same purpose, and the names that models use for their members."""

    tools: frozenset[str]
    aliases: Mapping[str, tuple[str, ...]]  # declared member -> names that models use instead
    at: str = ""  # path of the object inside the arguments, `*` for any list index
    copies: Mapping[str, str] = {}  # declared member -> member that it may be copied from

    def names_for(self, member: str) -> tuple[str, ...]:
        """The names that models use for `member`, in any spelling: `oldString` is `old_string`."""
        known = self.aliases.get(member)
        if known is not None:
            return known
        wanted = squash(member)
        # Switches such as `-n` match only exactly: `n` may be a number of lines.
        spelt = (name for name in self.aliases if name[0] != "-" and squash(name) == wanted)
        return self.aliases.get(next(spelt, ""), ())


def squash(name: str) -> str:
    """A name without case and separators: the same for `file_path`, `filePath` and `file-path`."""
    return _SEPARATORS.sub("", name).casefold()


def words(name: str) -> frozenset[str]:
    """The words of a name, in the singular: `filePaths` has `file` and `path`."""
    parts = _SEPARATORS.split(_CAMEL_BORDER.sub("_", name))
    return frozenset(singular(part.casefold()) for part in parts if part)


def singular(word: str) -> str:
    """`paths` -> `path`. Words such as `class` and `status` keep their s."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and word[-2] not in "sui" else word


_SEPARATORS = re.compile(r"[\W_]+")
_CAMEL_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def _tools(*names: str) -> frozenset[str]:
    return frozenset(squash(name) for name in names)


_PATH = ("path", "file", "filename", "file_name", "filepath", "target_file", "absolute_path")
_PATH_NAMES = dict.fromkeys(
    ("file_path", "path", "target_file", "absolute_path", "file"), (*_PATH, "file_path")
)
_CONTENT = ("content", "contents", "text", "file_content", "file_text", "data", "body", "code")
_OLD = ("old", "old_string", "old_str", "old_text", "search", "find", "from", "original")
_NEW = ("new", "new_string", "new_str", "new_text", "replace", "replacement", "to", "updated")
_PATTERN = ("pattern", "query", "search", "regex", "search_term", "search_pattern", "expression")
_TODO_TOOLS = _tools("TodoWrite", "todowrite", "write_todos", "update_todos", "todo_write")
_TODO_LIST = ("todos", "tasks", "items", "todo_list", "task_list", "todo", "list")
_TODO_TEXT = ("content", "task", "title", "text", "description", "name", "todo", "step")

FAMILIES: tuple[ToolFamily, ...] = (
    ToolFamily(
        _tools(
            "Bash", "Repl", "shell", "exec_command", "run_shell_command", "execute_command",
            "run_terminal_cmd", "run_command", "run_commands", "terminal", "local_shell", "unified_exec",
        ),
        {
            "command": ("prompt", "cmd", "script", "shell_command", "bash", "input", "code", "commands"),
            "cmd": ("command", "prompt", "script", "shell_command", "input"),
            "commands": ("command", "cmd", "script"),
            "workdir": ("cwd", "working_directory", "directory", "dir"),
            "cwd": ("workdir", "working_directory", "directory", "dir"),
            "timeout": ("timeout_ms", "timeout_seconds"),
        },
    ),
    ToolFamily(
        _tools("Read", "read_file", "view_file", "view", "view_image", "read_files"),
        {
            **_PATH_NAMES,
            "offset": ("start", "start_line", "line_start", "from_line"),
            "limit": ("lines", "num_lines", "line_count", "max_lines"),
        },
    ),
    ToolFamily(_tools("read_files"), {"files": ("paths", "file", "path", "file_paths", "filenames")}),
    ToolFamily(
        _tools("Write", "write_file", "write_to_file", "create_file"),
        {**_PATH_NAMES, "content": _CONTENT, "contents": _CONTENT, "file_content": _CONTENT},
    ),
    ToolFamily(
        _tools("Edit", "edit_file", "replace", "str_replace", "search_replace", "replace_in_file"),
        {
            **_PATH_NAMES,
            **dict.fromkeys(("old_string", "old_str", "old_text", "search"), _OLD),
            **dict.fromkeys(("new_string", "new_str", "new_text"), _NEW),
        },
    ),
    ToolFamily(_tools("MultiEdit", "multi_edit"), {**_PATH_NAMES, "edits": ("changes", "replacements")}),
    ToolFamily(
        _tools("MultiEdit", "multi_edit"),
        {"old_string": _OLD, "new_string": _NEW},
        at="/edits/*",
    ),
    ToolFamily(
        _tools("NotebookEdit"),
        {"notebook_path": _PATH, "new_source": ("source", *_CONTENT)},
    ),
    ToolFamily(
        _tools("Glob", "find_files", "file_search", "glob_file_search", "glob_search"),
        {
            **dict.fromkeys(("pattern", "glob_pattern", "query"), ("glob", "glob_pattern", *_PATTERN)),
            "path": ("paths", "directory", "dir", "dir_path", "folder", "cwd", "root"),
        },
    ),
    ToolFamily(
        _tools("Grep", "grep_search", "search_file_content", "search_files", "codebase_search", "rg"),
        {
            **dict.fromkeys(("pattern", "regex", "query"), _PATTERN),
            "path": ("paths", "directory", "dir", "dir_path", "folder", "file", "file_path"),
            "glob": ("include", "file_pattern", "file_glob", "includes"),
            "include": ("glob", "file_pattern", "file_glob"),
            "output_mode": ("mode", "output"),
            "-n": ("line_numbers", "show_line_numbers", "n"),
            "-i": ("case_insensitive", "ignore_case", "i"),
        },
    ),
    ToolFamily(
        _tools("LS", "list", "list_directory", "list_files", "list_dir"),
        {
            **dict.fromkeys(
                ("path", "dir_path", "directory", "relative_workspace_path", "target_directory"),
                ("path", "dir", "directory", "dir_path", "folder", "directory_path"),
            ),
        },
    ),
    ToolFamily(_TODO_TOOLS, dict.fromkeys(("todos", "items"), _TODO_LIST)),
    ToolFamily(
        _TODO_TOOLS,
        {
            "content": _TODO_TEXT,
            "description": _TODO_TEXT,
            "activeForm": ("active", "active_text", "doing", "in_progress_text"),
            "status": ("state",),
        },
        at="/todos/*",
        copies={"activeForm": "content"},
    ),
    ToolFamily(
        _tools("update_plan"),
        {"plan": ("steps", *_TODO_LIST), "explanation": ("reason",)},
    ),
    ToolFamily(
        _tools("update_plan"),
        {"step": _TODO_TEXT, "status": ("state",)},
        at="/plan/*",
    ),
    ToolFamily(
        _tools("Task", "Agent", "spawn_agent", "invoke_agent"),
        {
            "prompt": ("task", "instructions", "instruction", "message", "query", "command"),
            "description": ("title", "name", "summary", "task_name", "short_description"),
            "subagent_type": ("agent", "agent_type", "type", "subagent", "agent_name"),
        },
    ),
    ToolFamily(
        _tools("WebFetch", "web_fetch", "fetch"),
        {
            "url": ("uri", "link", "href", "urls", "address"),
            "prompt": ("query", "question", "instruction", "instructions"),
        },
    ),
    ToolFamily(
        _tools("WebSearch", "web_search", "google_web_search"),
        dict.fromkeys(("query", "search_term"), ("query", "q", "search", "search_term", "prompt")),
    ),
    ToolFamily(
        _tools("apply_patch", "applypatch"),
        dict.fromkeys(("input", "patch", "patchText"), ("patch", "diff", "input", "content")),
    ),
    ToolFamily(
        _tools("AskUserQuestion", "ask_followup_question", "ask_user", "question"),
        {"question": ("prompt", "message", "text"), "questions": ("question", "items")},
    ),
    ToolFamily(
        _tools("attempt_completion"), {"result": ("message", "text", "summary", "content", "answer")}
    ),
    ToolFamily(_tools("Skill", "activate_skill"), {"skill": ("name", "skill_name", "command")}),
    ToolFamily(_tools("ExitPlanMode"), {"plan": ("content", "text", "summary")}),
    ToolFamily(
        _tools("BashOutput", "TaskOutput", "KillShell"),
        {
            **dict.fromkeys(("bash_id", "shell_id", "task_id"), ("id", "bash_id", "shell_id", "task_id")),
        },
    ),
)  # fmt: skip

# Aliases that may also mean what they say: used only if no other name fits the member.
WEAK_ALIASES: tuple[ToolFamily, ...] = (ToolFamily(_tools("Grep", "Glob"), {"pattern": ("description",)}),)

# Names with the same meaning in any tool. A group applies only if exactly one of its names is declared,
# required and missing, and exactly one undeclared name of the group is given.
SYNONYMS: tuple[frozenset[str], ...] = tuple(
    frozenset(squash(name) for name in group)
    for group in (
        ("file_path", "path", "file", "filename", "target_file", "absolute_path"),
        ("directory", "dir", "folder", "path", "dir_path", "cwd", "workdir"),
        ("command", "cmd", "script", "shell_command"),
        ("content", "contents", "text", "body", "file_content", "data"),
        ("pattern", "query", "search", "regex", "search_term", "q", "keyword", "keywords"),
        ("old_string", "old_str", "old_text"),
        ("new_string", "new_str", "new_text"),
        ("url", "uri", "link", "href"),
        ("message", "msg", "text"),
        ("prompt", "instruction", "instructions"),
        ("question", "query", "prompt"),
        ("limit", "max_results", "count", "num_results", "top_k", "k", "n"),
        ("city", "location", "place"),
        ("unit", "units"),
        ("language", "lang"),
        ("title", "name", "heading"),
        ("description", "desc", "summary"),
    )
)

# Words with the same meaning. A group applies only if it contains exactly one choice of the enum.
SAME_CHOICE: tuple[frozenset[str], ...] = tuple(
    frozenset(squash(word) for word in group)
    for group in (
        ("completed", "complete", "done", "finished", "closed", "resolved"),
        (
            "in_progress", "active", "started", "doing", "ongoing", "current", "working", "running",
            "wip", "in_process", "processing",
        ),
        ("pending", "todo", "to_do", "not_started", "open", "queued", "waiting", "planned"),
        ("cancelled", "canceled", "aborted"),
        ("celsius", "c", "centigrade"),
        ("fahrenheit", "f"),
        ("ascending", "asc"),
        ("descending", "desc"),
    )
)  # fmt: skip

# Objects that models put around the arguments: the member with the arguments, and other members.
WRAPPER_PAYLOADS = frozenset(
    {
        "arguments", "args", "parameters", "params", "input", "inputs", "tool_input", "tool_args",
        "kwargs", "properties", "function", "payload", "action_input", "raw_arguments",
    }
)  # fmt: skip
WRAPPER_COMPANIONS = frozenset(
    {
        "name", "tool", "tool_name", "function", "function_name", "type", "id", "call_id",
        "tool_call_id", "recipient_name", "required", "$schema", "additionalProperties", "title",
        "action", "description",
    }
)  # fmt: skip
