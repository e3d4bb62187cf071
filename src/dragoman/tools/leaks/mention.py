"""Tells a call in the middle of a line from a sentence that only mentions one.

`I will look.<tool_call>…</tool_call>Then I compute.` is a call: the block is between two sentences, or
a word touches it on both sides. `Write <tool_call>…</tool_call> to run it.` and
`"<tool_call>…</tool_call>", then` mention a call: the sentence goes on after the block.
"""

from __future__ import annotations

_SENTENCE_ENDS = ".!?\u2026\u3002\uff01\uff1f"  # the last three are the full-width marks of Chinese
QUOTES = frozenset("\"'\u201c\u2018\u00ab\u300c\u300e")
_OPENS = "\"'`([{\u201c\u2018\u00ab\u300c\u300e\uff08"
_CLOSES = "\"'`)]}\u201d\u2019\u00bb\u300d\u300f\uff09.,;:!?\u2026\u3002\uff0c\uff1b\uff1a\uff01\uff1f"


def is_mention(before: str, gap: str, after: str) -> bool:
    """Whether the line only mentions the block.

    `before`: the line up to the block, or its last characters. `gap`: the blanks after the block. `after`:
    the next character on the line.
    """
    text = before.rstrip()
    if after in "<[]":
        return False  # more markup
    if after in _CLOSES or text[-1:] in _OPENS:
        return True
    if text == before and not gap and (after.isupper() or after.islower()):
        return False  # only for letters with case: Chinese has no blanks between words
    return text[-1:] not in _SENTENCE_ENDS or after.islower()
