"""A tool's definition in whichever protocol's form it is written.

People paste tool lists from anywhere, and Cursor mixes them within one request. Each definition is read by
the protocol whose form it has.
"""

from __future__ import annotations

from ...model.messages import Tool
from ..base import WireProtocol
from .fields import Obj, is_object
from .typed_json import as_json

NO_FORM = "none"


def tool_shape(tool: Obj) -> str:
    """The protocol that writes a tool exactly like this; `none` if no protocol does."""
    found = _writer(tool)
    return NO_FORM if found is None else found.name


def read_tool(tool: Obj, where: str) -> list[Tool]:
    """One entry of a list of tools: usually one tool, but some protocols group theirs."""
    found = _writer(tool)
    if found is None:
        tool = _completed(tool)
        found = _writer(tool)
    assert found is not None
    return list(found.tool_form.read(as_json(tool), where))


def _writer(tool: Obj) -> WireProtocol | None:
    from ..registry import PROTOCOLS  # here, as the registry lists Cursor, whose reader needs this module

    return next((record for record in PROTOCOLS.values() if record.tool_form.fits(tool)), None)


def _completed(tool: Obj) -> Obj:
    """A definition that is nearly OpenAI's, in one of its two forms."""
    return _flat_custom(tool) if tool.get("type") == "custom" else {**tool, "type": "function"}


def _flat_custom(tool: Obj) -> Obj:
    """A freeform tool with its grammar beside the format's type, as OpenAI's newer protocol has it."""
    custom = tool["custom"] if is_object(tool.get("custom")) else tool
    format = custom.get("format")
    if is_object(format) and is_object(format.get("grammar")):
        format = {"type": "grammar", **format["grammar"]}
    flat = {key: custom[key] for key in ("name", "description") if key in custom}
    return {"type": "custom", **flat, "format": format}
