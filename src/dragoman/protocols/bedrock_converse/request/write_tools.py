"""Write the tools of a request for Converse."""

from __future__ import annotations

from collections.abc import Callable

from ....model.messages import Cache, Request, Tool, ToolCall
from ...common.fields import Obj
from ...common.freeform import emulated
from ...common.notices import Notices
from ...common.schemas import complete
from ...common.tool_names import ToolNames
from ...common.unsupported import warn_deferred

_CHOICE = "settings.tool_choice"


class ToolWriter:
    """Writes tools under legal names, with schemas that the upstream accepts. Notes what it drops."""

    def __init__(
        self,
        request: Request,
        names: ToolNames,
        notices: Notices,
        mark: Callable[[Cache | None], list[Obj]],
    ) -> None:
        """`mark` writes the cache point after a tool."""
        self._request = request
        self._mark = mark
        self._settings = request.settings
        self._names = names
        self._notices = notices

    def config(self, *, has_calls: bool, thinks: bool) -> Obj | None:
        """Write `toolConfig`. Converse refuses a history with calls and without it (dify#17545)."""
        choice = self._settings.tool_choice
        # `toolChoice` is auto, any or a tool. There is no "none", so the tools are left out.
        tools = [] if choice is not None and choice.mode == "none" and not has_calls else self._offered()
        if choice is not None and choice.mode == "none" and has_calls:
            message = "Converse cannot forbid calls in a conversation that has some"
            self._notices.warn("forced-choice-downgraded", _CHOICE, message)
        tools = tools or (self._remembered() if has_calls else [])
        if not tools:
            return None
        if self._settings.parallel_tool_calls is False:
            message = "Converse cannot switch parallel calls off"
            self._notices.warn("parallel-dropped", "settings.parallel_tool_calls", message)
        chosen = self._choice(tools, thinks=thinks)
        return {"tools": tools} | ({"toolChoice": chosen} if chosen else {})

    def _offered(self) -> list[Obj]:
        choice = self._settings.tool_choice
        allowed = None if choice is None else choice.allowed
        offered: list[Obj] = []
        for at, tool in enumerate(self._request.tools):
            written = self._tool(tool, f"tools[{at}]") if allowed is None or tool.name in allowed else None
            if written is not None:
                offered += [written, *self._mark(tool.cache)]
        return offered

    def _remembered(self) -> list[Obj]:
        """The tools of earlier calls."""
        parts = (part for message in self._request.messages for part in message.parts)
        calls = (part for part in parts if isinstance(part, ToolCall))
        names = dict.fromkeys(self._names.out(call.name, call.namespace) for call in calls)
        return [_spec(name, None, {"type": "object", "properties": {}}) for name in names]

    def _tool(self, tool: Tool, path: str) -> Obj | None:
        if tool.kind == "hosted":
            message = f"{tool.hosted or tool.name} is run by another provider"
            self._notices.warn("hosted-tool-dropped", path, message)
            return None
        warn_deferred(tool, self._notices)
        name = self._names.out(tool.name, tool.namespace)
        if tool.kind == "custom":
            return _spec(name, *emulated(tool, path, self._notices))
        if tool.strict:
            message = "Converse does not enforce schemas for every model"
            self._notices.warn("strict-dropped", path, message)
        # Arguments are always an object, even if the schema allows other types.
        return _spec(name, tool.description, complete(tool.parameters) | {"type": "object"})

    def _choice(self, tools: list[Obj], *, thinks: bool) -> Obj | None:
        choice = self._settings.tool_choice
        if choice is None or choice.mode not in ("required", "named"):
            return None
        # Claude answers 400 to a forced call while it thinks.
        if thinks:
            message = "a model that thinks cannot be forced to call one"
            self._notices.warn("forced-choice-downgraded", _CHOICE, message)
            return None
        if choice.mode == "required":
            return {"any": {}}
        name = self._names.out(choice.name or "", choice.namespace)
        if any(tool.get("toolSpec", {}).get("name") == name for tool in tools):
            return {"tool": {"name": name}}
        message = "a model without the tool cannot be forced to call one"
        self._notices.warn("forced-choice-downgraded", _CHOICE, message)
        return None


def _spec(name: str, description: str | None, schema: Obj) -> Obj:
    # A description is optional, but must not be empty.
    described = {"description": description} if description and description.strip() else {}
    return {"toolSpec": {"name": name} | described | {"inputSchema": {"json": schema}}}
