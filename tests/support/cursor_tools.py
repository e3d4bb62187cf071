"""Calls of Cursor's tools with the structure that Cursor expects for each."""

from dataclasses import dataclass

from dragoman.conform.shape import Json

EDIT = {"blocking": True}


@dataclass(frozen=True, slots=True)
class Golden:
    name: str
    arguments: Json
    tool: int
    params: str
    want: Json


def _read(name: str, arguments: Json, **want: object) -> Golden:
    return Golden(name, arguments, 5, "read_file_params", {"relative_workspace_path": "src/a.py", **want})


def _edit(name: str, arguments: Json, **want: object) -> Golden:
    params = {"relative_workspace_path": "src/a.py", "language": "python", "blocking": True, **want}
    return Golden(name, arguments, 7, "edit_file_params", params)


def _shell(name: str, arguments: Json, **want: object) -> Golden:
    params = {"command": "ls -l", "require_user_approval": True, **want}
    return Golden(name, arguments, 15, "run_terminal_command_v2_params", params)


GOLDEN = [
    _read("read_file", {"target_file": "src/a.py"}, read_entire_file=True),
    _read("Read", {"path": "src/a.py"}, read_entire_file=True),
    _read("Read", {"file_path": "src/a.py", "offset": None, "limit": None}, read_entire_file=True),
    _read(
        "Read",
        {"path": "src/a.py", "offset": 10, "limit": 5},
        start_line_one_indexed=10,
        end_line_one_indexed_inclusive=14,
    ),
    _read("Read", {"path": "src/a.py", "offset": 10}, start_line_one_indexed=10),
    _read(
        "Read",
        {"path": "src/a.py", "limit": 20},
        start_line_one_indexed=1,
        end_line_one_indexed_inclusive=20,
    ),
    _read(
        "read_file",
        {"target_file": "src/a.py", "offset": 0, "limit": 2, "should_read_entire_file": False},
        start_line_one_indexed=1,
        end_line_one_indexed_inclusive=2,
    ),
    _read(
        "read_file",
        {
            "target_file": "src/a.py",
            "should_read_entire_file": True,
            "start_line_one_indexed": 3,
            "end_line_one_indexed_inclusive": 9,
            "explanation": "To see it.",
        },
        start_line_one_indexed=3,
        end_line_one_indexed_inclusive=9,
    ),
    _read("read_file", {"target_file": "src/a.py", "should_read_entire_file": False}),
    _read(
        "read_file",
        {"relative_workspace_path": "src/a.py", "max_lines": 50, "max_chars": 900},
        max_lines=50,
        max_chars=900,
        read_entire_file=True,
    ),
    _edit("Write", {"path": "src/a.py", "contents": "x = 1\n"}, contents="x = 1\n"),
    _edit("write", {"file_path": "src/a.py", "contents": ""}, contents=""),
    _edit(
        "StrReplace",
        {"path": "src/a.py", "old_string": "a", "new_string": ""},
        old_string="a",
        new_string="",
    ),
    _edit(
        "search_replace",
        {"file_path": "src/a.py", "old_string": "a", "new_string": "b", "replace_all": True},
        old_string="a",
        new_string="b",
        allow_multiple_matches=True,
    ),
    _edit(
        "edit_file",
        {"target_file": "src/a.py", "instructions": "Add OpenRouter Example", "code_edit": "y = 2"},
        instructions="Add OpenRouter Example",
        contents="y = 2",
    ),
    _edit(
        "edit_file",
        {"target_file": "src/a.py", "language": "cython", "content": "z"},
        language="cython",
        contents="z",
    ),
    Golden(
        "Write",
        {"path": "LICENSE", "contents": "MIT"},
        7,
        "edit_file_params",
        {"relative_workspace_path": "LICENSE", "language": "plaintext", "contents": "MIT", **EDIT},
    ),
    Golden("list_dir", {"relative_workspace_path": "src"}, 6, "list_dir_params", {"directory_path": "src"}),
    Golden("LS", {"path": "."}, 6, "list_dir_params", {"directory_path": "."}),
    _shell("run_terminal_command", {"command": "ls -l"}),
    _shell("run_terminal_cmd", {"command": "ls -l", "is_background": False}, is_background=False),
    _shell(
        "Shell",
        {"command": "ls -l", "working_directory": "src", "description": "Lists", "is_background": True},
        cwd="src",
        is_background=True,
    ),
    Golden(
        "delete_file",
        {"target_file": "a.txt", "explanation": "Unused."},
        11,
        "delete_file_params",
        {"relative_workspace_path": "a.txt"},
    ),
    Golden("Delete", {"path": "a"}, 11, "delete_file_params", {"relative_workspace_path": "a"}),
    Golden(
        "grep_search",
        {"query": "a.b", "case_sensitive": True, "include_pattern": "*.py", "exclude_pattern": "*.js"},
        3,
        "ripgrep_search_params",
        {
            "pattern_info": {"pattern": "a.b", "is_reg_exp": True, "is_case_sensitive": True},
            "options": {
                "include_pattern": {"pattern": "*.py"},
                "exclude_pattern": {"exclude_pattern": [{"pattern": {"pattern": "*.js"}}]},
            },
        },
    ),
    Golden(
        "Grep",
        {"pattern": "a.b", "path": "src", "glob": "*.py", "-i": True, "-A": 2, "output_mode": "content"},
        41,
        "ripgrep_raw_search_params",
        {
            "pattern": "a.b",
            "path": "src",
            "glob": "*.py",
            "case_insensitive": True,
            "context_after": 2,
            "output_mode": "content",
        },
    ),
    Golden("grep", {"pattern": "x"}, 41, "ripgrep_raw_search_params", {"pattern": "x"}),
    Golden(
        "glob_file_search",
        {"glob_pattern": "**/*.py", "target_directory": "src"},
        42,
        "glob_file_search_params",
        {"glob_pattern": "**/*.py", "target_directory": "src"},
    ),
    Golden("Glob", {"pattern": "*.md"}, 42, "glob_file_search_params", {"glob_pattern": "*.md"}),
    Golden("file_search", {"query": "app"}, 8, "file_search_params", {"query": "app"}),
    Golden("web_search", {"search_term": "news"}, 18, "web_search_params", {"search_term": "news"}),
    Golden("WebSearch", {"query": "news"}, 18, "web_search_params", {"search_term": "news"}),
    Golden("todo_read", {}, 34, "todo_read_params", {"read": True}),
    Golden(
        "TodoWrite",
        {"merge": False, "todos": [{"id": "1", "content": "Do", "status": "pending"}]},
        35,
        "todo_write_params",
        {"merge": False, "todos": [{"id": "1", "content": "Do", "status": "pending"}]},
    ),
    Golden(
        "edit_file_v2",
        {"path": "a", "contents": "x"},
        38,
        "edit_file_v2_params",
        {"relative_workspace_path": "a", "contents_after_edit": "x"},
    ),
    Golden("list_dir_v2", {"path": "a"}, 39, "list_dir_v2_params", {"target_directory": "a"}),
    Golden(
        "read_file_v2",
        {"path": "a", "offset": 3, "limit": 4},
        40,
        "read_file_v2_params",
        {"target_file": "a", "offset": 3, "limit": 4},
    ),
    Golden(
        "CallMcpTool",
        {"server": "files", "toolName": "stat", "arguments": {"path": "a"}},
        49,
        "call_mcp_tool_params",
        {"server": "files", "tool_name": "stat", "tool_args": {"path": "a"}},
    ),
]
