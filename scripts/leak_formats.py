"""The page about calls written as text: every format that is read, from the table."""

from __future__ import annotations

from dragoman.tools.leaks.formats import FORMATS
from dragoman.tools.leaks.heads import LeakFormat

_BEFORE = """\
# Calls written as text

A server without the right parser for its model passes on what the model writes: its tool calls as text.
The rule [call-in-text](rules.md#call-in-text) reads the formats below and gives out calls. A receipt names
the format as `recovered`.

- Only calls of tools that the client declared are read. Any other text stays as it is.
- Nothing is read from code fences, inline code, quotations (`> …`) or indented code.
- Words before, between and after calls stay text. A tag such as `<tool_call>` in the middle of a line is a
  call where a sentence ends before it, or where a word touches it on both sides. Where a sentence goes on
  around the tag, the answer only talks about it.
- A call that is cut off stays text. A call whose arguments cannot be made JSON does not go out: the answer
  ends with an error.
- Text is held back only while it may still become the beginning of a call.
- Some models put tokens around every message, also around messages of words. These tokens are taken out
  where an answer begins, where it goes on after a call, and between two messages, with a
  [notice](warnings.md): {frames}.

| format | written by | looks like |
| --- | --- | --- |
"""
_AFTER = """
`…` stands for a value, `↵` for a line break. Variants of spelling (bars, wrappers, quotes, fences) are read
too.
"""


def page() -> str:
    """The rules that hold for all formats, and the table."""
    shapes = dict.fromkeys(form.shape for form in FORMATS if form.read is None)
    before = _BEFORE.replace("{frames}", ", ".join(f"`{shape}`" for shape in shapes))
    return before + "".join(_row(form) for form in FORMATS if form.read is not None) + _AFTER


def _row(form: LeakFormat) -> str:
    shape = form.shape.replace("|", "\\|").replace("\n", " ↵ ")
    return f"| `{form.name}` | {form.models} | `` {shape} `` |\n"
