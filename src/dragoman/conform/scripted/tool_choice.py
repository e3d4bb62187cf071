"""Which of the tools on offer the scripted model takes."""

from __future__ import annotations

import re

from ...model.messages import Request, Tool
from ...tools.rules.tables import singular, words
from .user_text import Wish

_WORD = re.compile(r"[^\W_]+")
_MENTION, _IN_NAME, _HINT, _IN_DESCRIPTION, _ENOUGH = 6, 3, 2, 1, 2
_SAY_NOTHING = """
get set use the a an tool mcp this that with from your what when have will into about which used return
given and for are you can how please
"""
_EMPTY_WORDS = frozenset(_SAY_NOTHING.split())
# What people write when they mean a tool of such a name.
_HINTS: tuple[tuple[frozenset[str], frozenset[str]], ...] = tuple(
    (frozenset(names.split()), frozenset(said.split()))
    for names, said in (
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
# Tools that work through other models, change the agent's own state, or wait for a person.
_FAR = (
    "agent task subagent delegate workflow skill plan mode ask question schedule cron loop wakeup todo memory"
)
_FAR_OFF = frozenset(_FAR.split())


def choice(request: Request, text: str, *, eager: bool) -> Tool | None:
    """The offered tool that fits best what was asked, where one fits or one must be called."""
    wanted = request.settings.tool_choice
    mode = "auto" if wanted is None else wanted.mode
    tools = [tool for tool in request.tools if tool.kind != "hosted"]
    if wanted is not None and wanted.allowed is not None:
        tools = [tool for tool in tools if tool.name in wanted.allowed]
    if mode == "named" and wanted is not None:
        tools = [tool for tool in tools if tool.name == wanted.name]
    if mode == "none" or not tools:
        return None
    said = frozenset(singular(word.casefold()) for word in _WORD.findall(text))
    best = max(tools, key=lambda tool: _fit(tool, text, said))
    if _fit(best, text, said) >= _ENOUGH:
        return best
    if mode in ("required", "named"):
        return best
    return min(tools, key=_distance) if eager else None


def _distance(tool: Tool) -> int:
    """What to take where nothing is asked for: a shell does no harm with `ls`, and every agent runs it."""
    name = words(tool.name)
    return 0 if name & _SHELL else 2 if name & _FAR_OFF else 1


def _fit(tool: Tool, text: str, said: frozenset[str]) -> int:
    """How well the tool's name and the beginning of its description fit the user's words."""
    name = words(tool.name)
    points = _IN_NAME * len((name & said) - _EMPTY_WORDS)
    if len(tool.name) > 2 and re.search(rf"(?<!\w){re.escape(tool.name)}(?!\w)", text, re.IGNORECASE):
        points += _MENTION
    points += sum(_HINT * len(hints & said) for names, hints in _HINTS if names & name)
    if name & _SHELL and Wish(text).command():
        points += _MENTION
    about = (tool.description or "").partition(".")[0][:160]
    described = frozenset(singular(w.casefold()) for w in _WORD.findall(about) if len(w) > 3)
    return points + _IN_DESCRIPTION * len((described & said) - _EMPTY_WORDS)
