"""The tables of known tools: wrong parameter names are mapped to those of real agents."""

import json
from typing import Any

import pytest

from dragoman.tools.arguments import assemble
from dragoman.tools.rules import rules
from dragoman.tools.rules.tables import FAMILIES
from dragoman.tools.schema import compile_schema

STRING = {"type": "string"}
STRINGS = {"type": "array", "items": STRING}


def mended(tool: str, members: dict[str, Any], given: dict[str, Any]) -> Any:
    schema = {"type": "object", "properties": members, "required": [*members], "additionalProperties": False}
    call = assemble("live", tool, compile_schema(schema), rules())
    call.feed(json.dumps(given))
    return call.finish().value


@pytest.mark.parametrize(
    ("tool", "members", "given"),
    [
        ("edit", ["filePath", "oldString", "newString"], ["path", "search", "replace"]),  # opencode, Kilo
        ("edit", ["filePath", "oldString", "newString"], ["file", "original", "updated"]),
        ("Read", ["filepath"], ["target_file"]),  # Continue
        ("invoke_agent", ["prompt"], ["task"]),  # Gemini CLI
        ("run_shell_command", ["command"], ["prompt"]),  # Gemini CLI, Qwen Code
        ("exec_command", ["cmd"], ["prompt"]),  # Codex
        ("Bash", ["command"], ["prompt"]),  # Claude Code, Continue
    ],
)
def test_a_wrong_name_is_mapped_to_its_member(tool: str, members: list[str], given: list[str]) -> None:
    declared = dict.fromkeys(members, STRING)
    values = [f"value {number}" for number in range(len(members))]
    wanted = dict(zip(members, values, strict=True))
    assert mended(tool, declared, dict(zip(given, values, strict=True))) == wanted


def test_members_of_cline_file_tools() -> None:
    assert mended("read_files", {"files": STRINGS}, {"paths": ["a.py"]}) == {"files": ["a.py"]}


def test_a_command_line_switch_matches_only_exactly() -> None:
    """`-n` shows line numbers; a member that is called `n` counts something."""
    (grep,) = [family for family in FAMILIES if "-n" in family.aliases]
    assert grep.names_for("-n")
    assert grep.names_for("n") == ()
