"""Read a tool definition in the form of any protocol.

Cursor mixes the forms of several protocols within one request, and users of the library paste tool lists from
other sources. The protocol whose form a definition has reads it.
"""

from __future__ import annotations

from ...model.messages import Tool
from ..base import WireProtocol
from .fields import Obj, is_object
from .typed_json import as_json

NO_FORM = "none"


def tool_shape(tool: Obj) -> str:
    """The name of the protocol with exactly this form; `none` if there is none."""
    found = _writer(tool)
    return NO_FORM if found is None else found.name


def read_tool(tool: Obj, where: str) -> list[Tool]:
    """Read one entry of a tool list: usually one tool, but Gemini and Responses group several."""
    found = _writer(tool)
    if found is None:
        tool = _completed(tool)
        found = _writer(tool)
    assert found is not None
    return list(found.tool_form.read(as_json(tool), where))


def _writer(tool: Obj) -> WireProtocol | None:
    # Imported here: the registry imports Cursor, whose request reader imports this module.
    from ..registry import PROTOCOLS

    return next((record for record in PROTOCOLS.values() if record.tool_form.fits(tool)), None)


def _completed(tool: Obj) -> Obj:
    """Complete a definition that is nearly OpenAI's, so that Chat or Responses can read it."""
    return _flat_custom(tool) if tool.get("type") == "custom" else {**tool, "type": "function"}


def _flat_custom(tool: Obj) -> Obj:
    """A freeform tool in the flat form of Responses, from any mix of Chat's and Responses' form."""
    custom = tool["custom"] if is_object(tool.get("custom")) else tool
    format = custom.get("format")
    if is_object(format) and is_object(format.get("grammar")):
        format = {"type": "grammar", **format["grammar"]}
    flat = {key: custom[key] for key in ("name", "description") if key in custom}
    return {"type": "custom", **flat, "format": format}
