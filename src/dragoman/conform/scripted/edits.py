"""Edits as text, for aider: it offers no tools, asks for SEARCH/REPLACE blocks and applies them."""

from __future__ import annotations

from .user_text import UserText

_RULES = "SEARCH/REPLACE block"
"""Aider's instructions contain these words. They follow the user's text in the same message."""


def are_wanted(text: str) -> bool:
    return _RULES in text


def block(text: str) -> str:
    """A block that creates a file with the text that the user quoted."""
    user_text = UserText(text.partition(_RULES)[0].rstrip("# *\n"))
    file = user_text.string("path")
    return (
        f"I will write {file}.\n\n{file}\n```\n<<<<<<< SEARCH\n=======\n"
        f"{user_text.words()}\n>>>>>>> REPLACE\n```\n\nThat is all there is to do.\n"
    )
