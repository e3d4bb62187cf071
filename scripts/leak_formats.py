"""The manual page about calls written as text, generated from the table of formats."""

from __future__ import annotations

from dragoman.tools.leaks.formats import FORMATS
from dragoman.tools.leaks.heads import LeakFormat

_BEFORE = """\
# Calls written as text

A server without the right parser for its model sends tool calls as text, as the model writes them. The rule
[call-in-text](rules.md#call-in-text) turns the formats below into calls. `recovered` on a receipt names the
format.

- Dragoman recovers only calls of tools that the client declared. All other text stays unchanged.
- It never recovers calls from code fences, inline code, quotations (`> …`) or quotation marks (`"…"`).
- A call in tags such as `<tool_call>` stays text in indented code, too. A call between special tokens such as
  `<|tool_call|>` does not: models rarely write such tokens as an example.
- Text before, between and after calls stays text. A tag such as `<tool_call>` in the middle of a line is a
  call if a sentence ends before it, or if a word touches it on both sides. If the sentence continues around
  the tag, the answer only talks about it.
- A call that is cut off stays text. If the arguments of a call cannot be made JSON, the client does not get
  the call, and the answer ends with an error.
- Text is held back only while it may be the beginning of a call.
- Some models put tokens around every message, also around messages of text. Dragoman removes these tokens at
  the beginning of an answer, after a call, and between two messages, with a
  [notice](warnings.md): {frames}.

| format | written by | looks like |
| --- | --- | --- |
"""
_AFTER = """
`…` is a value, `↵` is a line break. Dragoman also reads other spellings (bars, wrappers, quotes, fences).
"""


def page() -> str:
    """The rules of all formats, and the table."""
    shapes = dict.fromkeys(form.shape for form in FORMATS if form.read is None)
    before = _BEFORE.replace("{frames}", ", ".join(f"`{shape}`" for shape in shapes))
    return before + "".join(_row(form) for form in FORMATS if form.read is not None) + _AFTER


def _row(form: LeakFormat) -> str:
    shape = form.shape.replace("|", "\\|").replace("\n", " ↵ ")
    return f"| `{form.name}` | {form.models} | `` {shape} `` |\n"
