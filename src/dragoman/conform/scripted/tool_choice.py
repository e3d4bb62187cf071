"""Choose one of the offered tools by the user's text."""

from __future__ import annotations

import re

from ...model.messages import Request, Tool
from ...tools.rules.tables import singular, words
from .user_text import UserText

_WORD = re.compile(r"[^\W_]+")
_MENTION, _IN_NAME, _HINT, _IN_DESCRIPTION, _ENOUGH = 6, 3, 2, 1, 2
_STOP_WORD_LIST = """
get set use the a an tool mcp this that with from your what when have will into about which used return
given and for are you can how please
"""
_STOP_WORDS = frozenset(_STOP_WORD_LIST.split())
# Words in a tool's name, and the words with which users ask for such a tool.
_HINTS: tuple[tuple[frozenset[str], frozenset[str]], ...] = tuple(
    (frozenset(names.split()), frozenset(hints.split()))
    for names, hints in (
        ("bash shell exec command terminal repl cmd", "run execute test build install git make command ls"),
        ("read view cat", "read show open view display content"),
        ("write create", "write create save"),
        ("edit replace patch", "edit change replace fix rename patch modify"),
        ("grep search", "search grep find occurrence"),
        ("glob ls list", "list find folder directory"),
        ("fetch web url browse", "fetch download page website http https"),
        ("todo plan", "todo plan step"),
    )
)
_SHELL = _HINTS[0][0]
# Tools that start other models, change the agent's own state, or wait for a person: the last choice.
_LAST_RESORT_LIST = (
    "agent task subagent delegate workflow skill plan mode ask question schedule cron loop wakeup todo memory"
)
_LAST_RESORT = frozenset(_LAST_RESORT_LIST.split())


def choice(request: Request, text: str, *, eager: bool) -> Tool | None:
    """The tool that matches the user's text best. None if no tool matches and none is required."""
    wanted = request.settings.tool_choice
    mode = "auto" if wanted is None else wanted.mode
    tools = [tool for tool in request.tools if tool.kind != "hosted"]
    if wanted is not None and wanted.allowed is not None:
        tools = [tool for tool in tools if tool.name in wanted.allowed]
    if mode == "named" and wanted is not None:
        tools = [tool for tool in tools if tool.name == wanted.name]
    if mode == "none" or not tools:
        return None
    used = frozenset(singular(word.casefold()) for word in _WORD.findall(text))
    best = max(tools, key=lambda tool: _score(tool, text, used))
    if _score(best, text, used) >= _ENOUGH:
        return best
    if mode in ("required", "named"):
        return best
    return min(tools, key=_rank) if eager else None


def _rank(tool: Tool) -> int:
    """The order of tools if the user asks for none: a shell first, because `ls` is harmless."""
    name = words(tool.name)
    return 0 if name & _SHELL else 2 if name & _LAST_RESORT else 1


def _score(tool: Tool, text: str, used: frozenset[str]) -> int:
    """How well the tool's name and the start of its description match the user's words."""
    name = words(tool.name)
    points = _IN_NAME * len((name & used) - _STOP_WORDS)
    if len(tool.name) > 2 and re.search(rf"(?<!\w){re.escape(tool.name)}(?!\w)", text, re.IGNORECASE):
        points += _MENTION
    points += sum(_HINT * len(hints & used) for names, hints in _HINTS if names & name)
    if name & _SHELL and UserText(text).command():
        points += _MENTION
    about = (tool.description or "").partition(".")[0][:160]
    described = frozenset(singular(w.casefold()) for w in _WORD.findall(about) if len(w) > 3)
    return points + _IN_DESCRIPTION * len((described & used) - _STOP_WORDS)
