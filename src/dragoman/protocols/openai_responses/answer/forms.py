"""The forms of content in a Responses answer, with their events; what a decoder tells the encoder of a frame.

Between equal protocols the decoder keeps the upstream's frames, and the encoder merges what it writes into
them:

- `BlockStart.extras` is an `Origin`: the place of the block, and the frames that announced it.
- `Carried` holds a frame with its `type`, such as `response.content_part.done`.
- The `extras` of a delta are the members of its frame without its position. A `Carried` without a `type` is
  what is left of a delta whose text goes another way; one with the type of a delta had no text.
- `End.extras` is the last frame. Its `output` is a table, by the upstream's index of the item.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.messages import Extras
from ..own import NAME

ADDED = "response.output_item.added"
DONE = "response.output_item.done"
ANNOTATED = "response.output_text.annotation.added"
CREATED = "response.created"
IN_PROGRESS = "response.in_progress"
QUEUED = "response.queued"
FAILED = "response.failed"
UNFINISHED = ("queued", "in_progress")
"""A response in the background. The client asks for it later, by its id."""


class Form(msgspec.Struct, frozen=True, eq=False):
    """A form of content that arrives in deltas."""

    item: str
    """The type of the item that holds it."""
    family: str
    """The beginning of the names of its events."""
    member: str
    """The member with the whole text."""
    type: str = ""
    """The type of the part."""
    list: str = ""
    """The member of the item that lists its parts. Empty: the item is the call."""
    holder: str = ""
    """The beginning of the names of the events of its part."""
    index: str = ""
    """The member with the index of its part."""


_CONTENT = ("content", "response.content_part", "content_index")
_SUMMARY = ("summary", "response.reasoning_summary_part", "summary_index")
TEXT = Form("message", "response.output_text", "text", "output_text", *_CONTENT)
REFUSAL = Form("message", "response.refusal", "refusal", "refusal", *_CONTENT)
SUMMARY = Form("reasoning", "response.reasoning_summary_text", "text", "summary_text", *_SUMMARY)
REASONING = Form("reasoning", "response.reasoning_text", "text", "reasoning_text", *_CONTENT)
ARGUMENTS = Form("function_call", "response.function_call_arguments", "arguments")
INPUT = Form("custom_tool_call", "response.custom_tool_call_input", "input")
OTHER = Form("message", "", "", "", *_CONTENT)
"""A part of a message without neutral meaning. It has no deltas."""

FORMS = (TEXT, REFUSAL, SUMMARY, REASONING, ARGUMENTS, INPUT)
CALLS = {form.item: form for form in (ARGUMENTS, INPUT)}
BY_TYPE = {form.type: form for form in FORMS if form.type}
BY_DELTA = {f"{form.family}.delta": form for form in FORMS}
BY_DONE = {f"{form.family}.done": form for form in FORMS}
PARTS_ADDED = {f"{form.holder}.added": form for form in (TEXT, SUMMARY)}
PARTS_DONE = {f"{form.holder}.done": form for form in (TEXT, SUMMARY)}


class Origin(msgspec.Struct, frozen=True, gc=False):
    """Where a block comes from."""

    item: int
    """The upstream's index of the item."""
    id: str | None
    """The upstream's id of the item."""
    form: Form | None
    """None: the block is a whole item."""
    at: int
    """The upstream's index of the part."""
    frames: list[dict[str, Any]]
    """The frames that announced the item and the part."""


def of_origin(origin: Origin) -> Extras:
    return Extras(NAME, {"origin": origin})


def string(members: dict[str, Any], name: str) -> str | None:
    """A member that is text; None if it is missing or anything else."""
    value = members.get(name)
    return value if isinstance(value, str) else None


def number(value: Any) -> int | None:
    """A whole number. Servers also send numbers as text or as floats."""
    if type(value) is int:
        return value
    try:
        return int(value) if isinstance(value, (str, float)) else None
    except (ValueError, OverflowError):
        return None
