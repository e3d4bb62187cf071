"""Edits in text, for agents that offer no tools: aider asks for blocks and applies those it finds."""

from __future__ import annotations

from .user_text import Wish

_RULES = "SEARCH/REPLACE block"
"""How aider's instructions name what they want; they stand behind the user's own words."""


def are_wanted(text: str) -> bool:
    return _RULES in text


def block(text: str) -> str:
    """A new file with what the user quoted."""
    wish = Wish(text.partition(_RULES)[0].rstrip("# *\n"))
    file = wish.string("path")
    return (
        f"I will write {file}.\n\n{file}\n```\n<<<<<<< SEARCH\n=======\n"
        f"{wish.words()}\n>>>>>>> REPLACE\n```\n\nThat is all there is to do.\n"
    )
