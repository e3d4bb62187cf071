"""What models do to a good tool call: each a small function from the call to what comes of it."""

from __future__ import annotations

from typing import Any

import msgspec

from ...model.messages import Part, Request, Text, ToolCall
from ...tools.rules.tables import FAMILIES, SYNONYMS, squash
from . import agent, values

_json = msgspec.json.Encoder().encode


def misnamed(call: ToolCall, request: Request) -> list[Part]:
    """Required members under names the schema does not know: `prompt` for `command`."""
    schema = agent.named(request, call).schema or {}
    declared, required = values.properties(schema), values.required(schema)
    renamed = {
        _misname(call.name, name, declared) if name in required else name: value
        for name, value in _object(call).items()
    }
    return [_with(call, renamed)]


def miscased(call: ToolCall, request: Request) -> list[Part]:
    """The tool's name in the wrong case."""
    lower = call.name.lower()
    return [msgspec.structs.replace(call, name=call.name.title() if lower == call.name else lower)]


def stringly(call: ToolCall, request: Request) -> list[Part]:
    """Numbers, booleans, arrays and objects as strings."""
    return [_with(call, {name: _as_string(value) for name, value in _object(call).items()})]


def wrapped(call: ToolCall, request: Request) -> list[Part]:
    """The arguments inside another object."""
    return [_with(call, {"name": call.name, "arguments": _object(call)})]


def almost_json(call: ToolCall, request: Request) -> list[Part]:
    """Arguments in Python's spelling, with a comma too many."""
    if call.kind == "custom":
        return [call]
    said = repr(_object(call))
    return [msgspec.structs.replace(call, arguments=said[:-1] + (",}" if len(said) > 2 else "}"))]


def fenced(call: ToolCall, request: Request) -> list[Part]:
    """Arguments in a fence, as if for people to read."""
    if call.kind == "custom":
        return [call]
    return [msgspec.structs.replace(call, arguments=f"```json\n{call.arguments}\n```")]


def incomplete(call: ToolCall, request: Request) -> list[Part]:
    """The first required member is missing, and no rule can know what it was."""
    missing = values.required(agent.named(request, call).schema or {})[:1]
    return [_with(call, {name: value for name, value in _object(call).items() if name not in missing})]


def invented(call: ToolCall, request: Request) -> list[Part]:
    """A tool that nobody offered."""
    return [msgspec.structs.replace(call, name="imaginary_tool", namespace=None)]


def ghostly(call: ToolCall, request: Request) -> list[Part]:
    """A call without a name before the real one."""
    return [ToolCall(id="", name="", arguments="{}"), call]


def doubled(call: ToolCall, request: Request) -> list[Part]:
    """The same call twice."""
    return [call, call]


def leaked(call: ToolCall, request: Request) -> list[Part]:
    """The call as text, in the markup the model was trained on."""
    said = _json({"name": call.name, "arguments": _object(call) or call.arguments}).decode()
    return [Text(f"<tool_call>\n{said}\n</tool_call>")]


def twofold(call: ToolCall, request: Request) -> list[Part]:
    """Another call of the same tool beside it."""
    tool = agent.named(request, call)
    other = agent.call(tool, agent.asked(request), variant=1)
    return [call, msgspec.structs.replace(other, id=f"{call.id}b")]


def _object(call: ToolCall) -> dict[str, Any]:
    """The arguments; a freeform call has none that could be spoiled."""
    return msgspec.json.decode(call.arguments) if call.kind == "function" else {}


def _with(call: ToolCall, arguments: dict[str, Any]) -> ToolCall:
    if call.kind == "custom":
        return call
    return msgspec.structs.replace(call, arguments=_json(arguments).decode())


def _as_string(value: Any) -> Any:
    return value if isinstance(value, str) or value is None else _json(value).decode()


def _misname(tool: str, name: str, declared: dict[str, Any]) -> str:
    """A name that models are known to use for this member, and that the schema does not declare."""
    known = [family for family in FAMILIES if squash(tool) in family.tools and not family.at]
    aliases = [alias for family in known for alias in family.aliases.get(name, ())]
    aliases += [word for group in SYNONYMS if squash(name) in group for word in sorted(group)]
    taken = {squash(other) for other in declared}
    first, *rest = name.split("_")
    other_case = "".join((first, *(word.title() for word in rest))) if rest else name.upper()
    return next((alias for alias in aliases if squash(alias) not in taken), other_case)
