"""Ways in which models damage a good tool call: one small function each."""

from __future__ import annotations

from typing import Any

import msgspec

from ...model.messages import Part, Request, Text, ToolCall
from ...tools.rules.tables import FAMILIES, SYNONYMS, squash
from . import agent, values

_json = msgspec.json.Encoder().encode


def misnamed(call: ToolCall, request: Request) -> list[Part]:
    """Rename the required arguments to names that the schema does not declare: `prompt` for `command`."""
    schema = agent.tool_of(request, call).schema or {}
    declared, required = values.properties(schema), values.required(schema)
    renamed = {
        _misname(call.name, name, declared) if name in required else name: value
        for name, value in _object(call).items()
    }
    return [_with(call, renamed)]


def miscased(call: ToolCall, request: Request) -> list[Part]:
    """Write the tool's name in the wrong case."""
    lower = call.name.lower()
    return [msgspec.structs.replace(call, name=call.name.title() if lower == call.name else lower)]


def stringly(call: ToolCall, request: Request) -> list[Part]:
    """Send numbers, booleans, arrays and objects as strings."""
    return [_with(call, {name: _as_string(value) for name, value in _object(call).items()})]


def wrapped(call: ToolCall, request: Request) -> list[Part]:
    """Wrap the arguments in another object."""
    return [_with(call, {"name": call.name, "arguments": _object(call)})]


def almost_json(call: ToolCall, request: Request) -> list[Part]:
    """Write the arguments as Python literals, with a trailing comma."""
    if call.kind == "custom":
        return [call]
    text = repr(_object(call))
    return [msgspec.structs.replace(call, arguments=text[:-1] + (",}" if len(text) > 2 else "}"))]


def fenced(call: ToolCall, request: Request) -> list[Part]:
    """Put the arguments in a Markdown code fence."""
    if call.kind == "custom":
        return [call]
    return [msgspec.structs.replace(call, arguments=f"```json\n{call.arguments}\n```")]


def incomplete(call: ToolCall, request: Request) -> list[Part]:
    """Omit the first required argument: no rule can restore it."""
    missing = values.required(agent.tool_of(request, call).schema or {})[:1]
    return [_with(call, {name: value for name, value in _object(call).items() if name not in missing})]


def invented(call: ToolCall, request: Request) -> list[Part]:
    """Call a tool that the request does not offer."""
    return [msgspec.structs.replace(call, name="imaginary_tool", namespace=None)]


def with_ghost_call(call: ToolCall, request: Request) -> list[Part]:
    """Add a call without a name before the real call."""
    return [ToolCall(id="", name="", arguments="{}"), call]


def sent_twice(call: ToolCall, request: Request) -> list[Part]:
    """Send the same call twice."""
    return [call, call]


def leaked(call: ToolCall, request: Request) -> list[Part]:
    """Write the call as text, in the markup that open models are trained on."""
    text = _json({"name": call.name, "arguments": _object(call) or call.arguments}).decode()
    return [Text(f"<tool_call>\n{text}\n</tool_call>")]


def with_second_call(call: ToolCall, request: Request) -> list[Part]:
    """Add a second call of the same tool."""
    tool = agent.tool_of(request, call)
    other = agent.call(tool, agent.last_user_text(request), variant=1)
    return [call, msgspec.structs.replace(other, id=f"{call.id}b")]


def _object(call: ToolCall) -> dict[str, Any]:
    """The arguments as an object; empty for a freeform call."""
    return msgspec.json.decode(call.arguments) if call.kind == "function" else {}


def _with(call: ToolCall, arguments: dict[str, Any]) -> ToolCall:
    if call.kind == "custom":
        return call
    return msgspec.structs.replace(call, arguments=_json(arguments).decode())


def _as_string(value: Any) -> Any:
    return value if isinstance(value, str) or value is None else _json(value).decode()


def _misname(tool: str, name: str, declared: dict[str, Any]) -> str:
    """A name that models often use for this argument and that the schema does not declare."""
    known = [family for family in FAMILIES if squash(tool) in family.tools and not family.at]
    aliases = [alias for family in known for alias in family.aliases.get(name, ())]
    aliases += [word for group in SYNONYMS if squash(name) in group for word in sorted(group)]
    taken = {squash(other) for other in declared}
    first, *rest = name.split("_")
    other_case = "".join((first, *(word.title() for word in rest))) if rest else name.upper()
    return next((alias for alias in aliases if squash(alias) not in taken), other_case)
