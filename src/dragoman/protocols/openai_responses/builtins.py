"""Built-in tools of Responses that the client runs: `local_shell`, `shell`, `apply_patch`, `tool_search`.

A client declares them by type only, and each has its own type of call item. For every other protocol they
become functions. The arguments of such a function are the item's `action` or `operation`, so `call_item` can
turn a call into the item again. A shell in OpenAI's container, or a search on OpenAI's side, is not a
client's tool.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ...model.messages import Media, Text, Tool, ToolCall, ToolResult
from ..common.call_ids import from_client
from ..common.fields import Obj, decode_json, is_array, is_object, mapping, need_string, objects, string

_json = msgspec.json.Encoder().encode
_STRING: Obj = {"type": "string"}
_STRINGS: Obj = {"type": "array", "items": _STRING}


def _milliseconds(description: str) -> Obj:
    return {"type": "integer", "description": description}


_LOCAL_SHELL: Obj = {
    "type": "object",
    "properties": {
        "command": _STRINGS | {"description": "The program and its arguments."},
        "env": {
            "type": "object",
            "additionalProperties": _STRING,
            "description": "Environment variables to set.",
        },
        "timeout_ms": _milliseconds("How long it may take."),
        "user": _STRING | {"description": "The user to run it as."},
        "working_directory": _STRING | {"description": "The folder to run it in."},
    },
    "required": ["command"],
}
_SHELL: Obj = {
    "type": "object",
    "properties": {
        "commands": _STRINGS | {"description": "Shell commands, run one after another."},
        "timeout_ms": _milliseconds("How long all of them may take."),
        "max_output_length": {"type": "integer", "description": "How many characters of output to keep."},
    },
    "required": ["commands"],
}
# Other models know OpenAI's patch format only from this description.
_APPLY_PATCH: Obj = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
        "path": _STRING | {"description": "The file, relative to the workspace."},
        "diff": _STRING
        | {
            "description": (
                "For create_file: the content, each line with a leading +. For update_file: hunks that begin "
                "with @@ and have lines with a leading space, - or +. Not for delete_file."
            )
        },
    },
    "required": ["type", "path"],
}


class Builtin(msgspec.Struct, frozen=True):
    """A tool that the client runs and declares only by its type."""

    description: str
    parameters: Obj
    item: str
    """The type of its call item."""
    output: str
    """The type of its output item."""
    argument_member: str
    """The member of the call item that holds the arguments."""
    fixed: Obj = {}
    """Arguments that the call item always has."""
    markers: Obj = {}
    """Members of the definition, call and output that show that the client runs the tool."""

    def is_run_by_client(self, thing: Obj) -> bool:
        """Does this definition, call or output belong to a tool that the client runs?"""
        environment = thing.get("environment")
        if is_object(environment) and environment.get("type") != "local":
            return False
        return all(thing.get(key) == value for key, value in self.markers.items())


BUILTINS: dict[str, Builtin] = {
    "local_shell": Builtin(
        "Run a command on the user's machine.",
        _LOCAL_SHELL,
        "local_shell_call",
        "local_shell_call_output",
        "action",
        {"type": "exec", "env": {}},
    ),
    "shell": Builtin(
        "Run shell commands on the user's machine.", _SHELL, "shell_call", "shell_call_output", "action"
    ),
    "apply_patch": Builtin(
        "Create, change or delete one file.",
        _APPLY_PATCH,
        "apply_patch_call",
        "apply_patch_call_output",
        "operation",
    ),
    "tool_search": Builtin(
        "Find more tools.",
        {"type": "object"},
        "tool_search_call",
        "tool_search_output",
        "arguments",
        markers={"execution": "client"},
    ),
}
_BY_CALL = {builtin.item: name for name, builtin in BUILTINS.items()}
_BY_OUTPUT = {builtin.output: name for name, builtin in BUILTINS.items()}


def read_builtin(definition: Obj, kind: str, where: str) -> Tool | None:
    """The function for a built-in definition; None if the client does not run it.

    `builtin` is the tool's name. The encoder needs it to write call items of the right type.
    """
    builtin = BUILTINS.get(kind)
    if builtin is None or not builtin.is_run_by_client(definition):
        return None
    return Tool(
        name=kind,
        description=string(definition, "description", where) or builtin.description,
        parameters=mapping(definition, "parameters", where) or builtin.parameters,
        builtin=kind,
    )


def read_call(item: Obj, where: str) -> ToolCall | None:
    """Read a call item; None if the client did not run the call."""
    name = _BY_CALL[item["type"]]
    builtin = BUILTINS[name]
    if not builtin.is_run_by_client(item):
        return None
    given = mapping(item, builtin.argument_member, where)
    if given is None:
        return None
    arguments = {k: v for k, v in given.items() if v is not None and builtin.fixed.get(k) != v}
    return ToolCall(
        id=from_client(need_string(item, "call_id", where)),
        name=name,
        arguments=_json(arguments).decode(),
        builtin=name,
    )


def call_item(name: str, call: ToolCall, item_id: str, complete: bool = True) -> Obj | None:
    """The call item for a finished call of the built-in tool `name`; None if the arguments are no object."""
    builtin = BUILTINS[name]
    try:
        arguments = decode_json(call.arguments or "{}")
    except (ValueError, RecursionError):
        return None
    if not is_object(arguments):
        return None
    return {
        "type": builtin.item,
        "id": item_id,
        "call_id": call.id,
        **builtin.markers,
        builtin.argument_member: builtin.fixed | arguments,
        # The SDK's type of a patch call has no status `incomplete`.
        "status": "completed" if complete else "in_progress",
    }


def read_output(item: Obj, where: str) -> ToolResult | None:
    """Read an output item; None if the client did not run the call."""
    name = _BY_OUTPUT[item["type"]]
    if not BUILTINS[name].is_run_by_client(item):
        return None
    # The output of `local_shell`, the oldest of them, has the call's id in `id`.
    key = "call_id" if item.get("call_id") is not None else "id"
    text, failed = _READ_OUTPUT[item["type"]](item, where)
    parts: tuple[Text | Media, ...] = (Text(text),) if text else ()
    return ToolResult(
        call_id=from_client(need_string(item, key, where)),
        parts=parts,
        is_error=failed,
        name=name,
    )


def _local_shell_output(item: Obj, where: str) -> tuple[str, bool]:
    return string(item, "output", where) or "", item.get("status") == "incomplete"


def _shell_output(item: Obj, where: str) -> tuple[str, bool]:
    chunks = item.get("output")
    if not is_array(chunks):
        return string(item, "output", where) or "", False
    texts = [_terminal_text(chunk) for chunk in chunks if is_object(chunk)]
    return "\n".join(filter(None, texts)), False


def _terminal_text(chunk: Obj) -> str:
    """Output, errors and exit code as text, like in a terminal."""
    texts = [str(chunk.get(key) or "").rstrip("\n") for key in ("stdout", "stderr")]
    outcome: Any = chunk.get("outcome")
    ended = outcome if is_object(outcome) else {}
    if ended.get("type") == "timeout":
        texts.append("[timed out]")
    elif ended.get("exit_code"):
        texts.append(f"[exit code {ended['exit_code']}]")
    return "\n".join(filter(None, texts))


def _patch_output(item: Obj, where: str) -> tuple[str, bool]:
    failed = string(item, "status", where) == "failed"
    return string(item, "output", where) or ("" if failed else "Done."), failed


def _search_output(item: Obj, where: str) -> tuple[str, bool]:
    """List the found tools by name. Their definitions are already among the request's tools."""
    found = [_tool_summary(definition, at) for at, definition in objects(item, "tools", where)]
    return "\n".join(found) or "No tools were found.", False


def _tool_summary(definition: Obj, where: str) -> str:
    name = string(definition, "name", where) or definition.get("type")
    text = string(definition, "description", where)
    inside = [_tool_summary(tool, at) for at, tool in objects(definition, "tools", where)]
    return "\n".join([f"{name}: {text}" if text else f"{name}", *(f"  {line}" for line in inside)])


_READ_OUTPUT: dict[str, Callable[[Obj, str], tuple[str, bool]]] = {
    "local_shell_call_output": _local_shell_output,
    "shell_call_output": _shell_output,
    "apply_patch_call_output": _patch_output,
    "tool_search_output": _search_output,
}
CALLS = frozenset(_BY_CALL)
OUTPUTS = frozenset(_READ_OUTPUT)
