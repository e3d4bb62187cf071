"""Whether a block in the middle of a line is a call, or only talked about.

`I will look.<tool_call>…</tool_call>Then I compute.` calls: the block stands between two sentences, or
a word touches it on both sides. `Write <tool_call>…</tool_call> to run it.` and
`"<tool_call>…</tool_call>", then` talk about a call: the sentence goes on around the block.
"""

from __future__ import annotations

_SENTENCE_ENDS = ".!?\u2026\u3002\uff01\uff1f"  # the last ones are full-width, as Chinese writes them
_OPENS = "\"'`([{\u201c\u2018\u00ab\u300c\u300e\uff08"
_CLOSES = "\"'`)]}\u201d\u2019\u00bb\u300d\u300f\uff09.,;:!?\u2026\u3002\uff0c\uff1b\uff1a\uff01\uff1f"


def is_mention(before: str, gap: str, after: str) -> bool:
    """`before`: what the line says up to the block, or its last characters; `gap`: the blanks after the
    block; `after`: the next character on the line."""
    said = before.rstrip()
    if after in "<[]":
        return False  # more markup
    if after in _CLOSES or said[-1:] in _OPENS:
        return True
    if said == before and not gap and (after.isupper() or after.islower()):
        return False  # in scripts without case, words are written without blanks
    return said[-1:] not in _SENTENCE_ENDS or after.islower()
