"""Cursor's own tools as data: their numbers, their parameter structures, and the names that models use.

Numbers and structures come from Cursor's internal protocol (`ClientSideToolV2`). This table
lists the tools whose whole structure is known. Every other tool is sent as an MCP tool.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

import msgspec

from ...common.fields import Obj
from .derived import file_language, line_range


class ClientTool(IntEnum):
    """`ClientSideToolV2`: the tools that Cursor's client can run. The missing numbers are unused."""

    READ_SEMSEARCH_FILES = 1
    RIPGREP_SEARCH = 3
    READ_FILE = 5
    LIST_DIR = 6
    EDIT_FILE = 7
    FILE_SEARCH = 8
    SEMANTIC_SEARCH_FULL = 9
    DELETE_FILE = 11
    REAPPLY = 12
    RUN_TERMINAL_COMMAND_V2 = 15
    FETCH_RULES = 16
    WEB_SEARCH = 18
    MCP = 19
    SEARCH_SYMBOLS = 23
    BACKGROUND_COMPOSER_FOLLOWUP = 24
    KNOWLEDGE_BASE = 25
    FETCH_PULL_REQUEST = 26
    DEEP_SEARCH = 27
    CREATE_DIAGRAM = 28
    FIX_LINTS = 29
    READ_LINTS = 30
    GO_TO_DEFINITION = 31
    TASK = 32
    AWAIT_TASK = 33
    TODO_READ = 34
    TODO_WRITE = 35
    EDIT_FILE_V2 = 38
    LIST_DIR_V2 = 39
    READ_FILE_V2 = 40
    RIPGREP_RAW_SEARCH = 41
    GLOB_FILE_SEARCH = 42
    CREATE_PLAN = 43
    LIST_MCP_RESOURCES = 44
    READ_MCP_RESOURCE = 45
    READ_PROJECT = 46
    UPDATE_PROJECT = 47
    TASK_V2 = 48
    CALL_MCP_TOOL = 49
    APPLY_AGENT_DIFF = 50
    ASK_QUESTION = 51
    SWITCH_MODE = 52
    GENERATE_IMAGE = 53
    COMPUTER_USE = 54
    WRITE_SHELL_STDIN = 55


class Field(msgspec.Struct, frozen=True):
    """A member of a parameter structure. Its value is the first of several arguments that the model gives."""

    name: str
    """A path: dots lead into objects, `[]` into a list with one item (`patterns[].pattern`)."""
    sources: tuple[str, ...] = ()
    """The names of arguments, besides the member's own name."""
    default: Any = None
    """The value if no argument is given. None: leave the member out."""


class Kind(msgspec.Struct, frozen=True):
    """One of Cursor's tools."""

    tool: ClientTool
    params: str
    """The member of the call that holds its parameters."""
    names: tuple[str, ...]
    """The names that models use: Cursor's older prompts have snake_case names, the newer ones title case."""
    fields: tuple[Field, ...] = ()
    fixed: dict[str, Any] = {}
    """Parameters that do not depend on the arguments."""
    derived: Callable[[Obj, Obj], Obj] | None = None
    """Computes more parameters from the arguments and the parameters so far."""


_PATH = ("target_file", "path", "file_path", "filePath", "filename", "file")
_EXCLUDE = ("exclude_pattern", "exclude")
_DIRECTORY = ("path", "dir_path", "directory", "target_directory", "relative_workspace_path")

KINDS: tuple[Kind, ...] = (
    Kind(
        ClientTool.READ_FILE,
        "read_file_params",
        ("read_file", "Read", "ReadFile"),
        (Field("relative_workspace_path", _PATH), Field("max_lines"), Field("max_chars")),
        derived=line_range,
    ),
    Kind(
        ClientTool.EDIT_FILE,
        "edit_file_params",
        (
            *("edit_file", "write", "write_file", "search_replace", "str_replace", "create_file"),
            *("Write", "WriteFile", "StrReplace", "SearchReplace", "Edit", "EditFile"),
        ),
        (
            Field("relative_workspace_path", _PATH),
            Field("language"),
            Field("contents", ("content", "code_edit", "file_text", "file_content")),
            Field("old_string", ("old_str", "old_text")),
            Field("new_string", ("new_str", "new_text")),
            Field("allow_multiple_matches", ("replace_all",)),
            Field("instructions", ("instruction",)),
        ),
        fixed={"blocking": True},
        derived=file_language,
    ),
    Kind(
        ClientTool.LIST_DIR,
        "list_dir_params",
        ("list_dir", "list_directory", "LS", "List", "ListDir"),
        (Field("directory_path", _DIRECTORY),),
    ),
    Kind(
        ClientTool.RUN_TERMINAL_COMMAND_V2,
        "run_terminal_command_v2_params",
        (
            *("run_terminal_command", "run_terminal_cmd", "run_terminal_command_v2"),
            *("Shell", "Bash", "RunTerminalCommand"),
        ),
        (
            Field("command", ("cmd",)),
            Field("cwd", ("working_directory", "workingDirectory", "workdir", "directory")),
            Field("is_background", ("background", "run_in_background", "isBackground")),
        ),
        fixed={"require_user_approval": True},
    ),
    Kind(
        ClientTool.DELETE_FILE,
        "delete_file_params",
        ("delete_file", "Delete", "DeleteFile"),
        (Field("relative_workspace_path", _PATH),),
    ),
    Kind(
        ClientTool.RIPGREP_SEARCH,
        "ripgrep_search_params",
        ("grep_search", "ripgrep_search"),
        (
            Field("pattern_info.pattern", ("query", "pattern", "regex")),
            Field("pattern_info.is_reg_exp", ("is_regex", "is_regexp"), default=True),
            Field("pattern_info.is_case_sensitive", ("case_sensitive",)),
            Field("options.include_pattern.pattern", ("include_pattern", "include", "glob")),
            Field("options.exclude_pattern.exclude_pattern[].pattern.pattern", _EXCLUDE),
            Field("options.max_results", ("max_results", "head_limit")),
        ),
    ),
    Kind(
        ClientTool.RIPGREP_RAW_SEARCH,
        "ripgrep_raw_search_params",
        ("grep", "rg", "ripgrep_raw_search", "Grep", "Ripgrep"),
        (
            Field("pattern", ("query", "regex")),
            Field("path", ("target_directory", "directory")),
            Field("glob", ("include", "include_pattern")),
            Field("output_mode", ("outputMode",)),
            Field("context_before", ("-B",)),
            Field("context_after", ("-A",)),
            Field("context", ("-C",)),
            Field("case_insensitive", ("-i",)),
            Field("type"),
            Field("head_limit", ("headLimit", "max_results")),
            Field("multiline"),
            Field("ignore_globs"),
        ),
    ),
    Kind(
        ClientTool.GLOB_FILE_SEARCH,
        "glob_file_search_params",
        ("glob_file_search", "glob", "Glob", "GlobFileSearch"),
        (
            Field("glob_pattern", ("pattern", "glob")),
            Field("target_directory", ("path", "directory", "dir_path", "cwd")),
        ),
    ),
    Kind(
        ClientTool.FILE_SEARCH,
        "file_search_params",
        ("file_search", "FileSearch"),
        (Field("query", ("search_term",)),),
    ),
    Kind(
        ClientTool.WEB_SEARCH,
        "web_search_params",
        ("web_search", "WebSearch"),
        (Field("search_term", ("query", "q")),),
    ),
    Kind(
        ClientTool.FETCH_RULES,
        "fetch_rules_params",
        ("fetch_rules", "FetchRules"),
        (Field("rule_names", ("rules",)),),
    ),
    Kind(
        ClientTool.SEARCH_SYMBOLS,
        "search_symbols_params",
        ("search_symbols", "SearchSymbols"),
        (Field("query"),),
    ),
    Kind(
        ClientTool.CREATE_DIAGRAM,
        "create_diagram_params",
        ("create_diagram", "CreateDiagram"),
        (Field("content"),),
    ),
    Kind(
        ClientTool.READ_LINTS,
        "read_lints_params",
        ("read_lints", "ReadLints"),
        (Field("path"), Field("paths")),
    ),
    Kind(
        ClientTool.TODO_READ,
        "todo_read_params",
        ("todo_read", "TodoRead"),
        fixed={"read": True},
    ),
    Kind(
        ClientTool.TODO_WRITE,
        "todo_write_params",
        ("todo_write", "TodoWrite"),
        (Field("todos", ("items",)), Field("merge")),
    ),
    Kind(
        ClientTool.EDIT_FILE_V2,
        "edit_file_v2_params",
        ("edit_file_v2", "EditFileV2"),
        (
            Field("relative_workspace_path", _PATH),
            Field("contents_after_edit", ("contents", "content")),
        ),
    ),
    Kind(
        ClientTool.LIST_DIR_V2,
        "list_dir_v2_params",
        ("list_dir_v2", "ListDirV2"),
        (Field("target_directory", ("directory_path", *_DIRECTORY)), Field("ignore_globs")),
    ),
    Kind(
        ClientTool.READ_FILE_V2,
        "read_file_v2_params",
        ("read_file_v2", "ReadFileV2"),
        (
            Field("target_file", ("relative_workspace_path", *_PATH)),
            Field("offset"),
            Field("limit"),
            Field("chars_limit", ("max_chars",)),
        ),
    ),
    Kind(
        ClientTool.LIST_MCP_RESOURCES,
        "list_mcp_resources_params",
        ("list_mcp_resources", "ListMcpResources"),
        (Field("server"),),
    ),
    Kind(
        ClientTool.READ_MCP_RESOURCE,
        "read_mcp_resource_params",
        ("read_mcp_resource", "ReadMcpResource", "fetch_mcp_resource", "FetchMcpResource"),
        (Field("server"), Field("uri"), Field("download_path", ("downloadPath",))),
    ),
    Kind(
        ClientTool.TASK_V2,
        "task_v2_params",
        ("task_v2", "Task", "TaskV2"),
        (
            Field("description"),
            Field("prompt"),
            Field("subagent_type"),
            Field("model"),
            Field("name"),
        ),
    ),
    Kind(
        ClientTool.CALL_MCP_TOOL,
        "call_mcp_tool_params",
        ("call_mcp_tool", "CallMcpTool"),
        (
            Field("server"),
            Field("tool_name", ("toolName", "name")),
            Field("tool_args", ("arguments", "args")),
        ),
    ),
    Kind(
        ClientTool.ASK_QUESTION,
        "ask_question_params",
        ("ask_question", "AskQuestion"),
        (Field("title"), Field("questions"), Field("run_async")),
    ),
    Kind(
        ClientTool.SWITCH_MODE,
        "switch_mode_params",
        ("switch_mode", "SwitchMode"),
        (
            Field("from_mode_id"),
            Field("to_mode_id", ("target_mode_id",)),
            Field("explanation"),
        ),
    ),
)

BY_NAME: dict[str, Kind] = {name: kind for kind in KINDS for name in kind.names}
