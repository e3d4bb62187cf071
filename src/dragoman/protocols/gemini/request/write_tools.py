"""Write tools and the tool choice as Gemini's `tools` and `toolConfig`."""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.errors import BadRequest
from ....model.messages import Request, Tool, ToolChoice, ToolServer
from ...base import Target
from ...common import schemas
from ...common.fields import Obj
from ...common.freeform import emulated
from ...common.notices import Notices
from ...common.search_limits import limits_of, warn_unlimited
from ...common.tool_names import ToolNames
from ...common.tool_servers import reachable
from ...common.typed_json import unchanged_array
from ...common.unsupported import warn_deferred
from ..own import is_own

# Hosted tools of other providers, by the prefix of their type, and Gemini's counterpart.
_HOSTED = {
    "web_search": "googleSearch",
    "web_fetch": "urlContext",
    "code_execution": "codeExecution",
    "code_interpreter": "codeExecution",
}


class ToolWriter:
    """Writes tools under legal names, with schemas that the upstream accepts. Notes what it drops."""

    def __init__(
        self, request: Request, names: ToolNames, target: Target, notices: Notices, *, own: bool
    ) -> None:
        """`own`: a Gemini client sent the request."""
        self._own = own
        self._tools = request.tools
        self._choice = request.settings.tool_choice
        self._names = names
        self._target = target
        self._notices = notices
        self._has_functions = any(tool.kind != "hosted" for tool in request.tools)

    def tools(self) -> list[Any] | msgspec.Raw:
        """Write one group of functions, and one object for each hosted tool. Copy a client's own list."""
        given = unchanged_array([tool.raw if is_own(tool.raw) else None for tool in self._tools])
        if given is not None:
            return given
        functions: list[Any] = []
        hosted: list[Any] = []
        for index, tool in enumerate(self._tools):
            if tool.kind != "hosted":
                functions.append(self._function(tool, f"tools[{index}]"))
            elif (own := self._hosted(tool, f"tools[{index}]")) is not None and own not in hosted:
                hosted.append(own)
        return ([{"functionDeclarations": functions}] if functions else []) + hosted

    def config(self, tools: list[Any] | msgspec.Raw) -> Obj:
        """Write `toolConfig` for the result of `tools`."""
        config: Obj = {}
        calling = self._calling()
        if calling is not None:
            config["functionCallingConfig"] = calling
        # Gemini 3 requires it for functions together with hosted tools. Older models do not allow both.
        translated = any(t.kind == "hosted" and not is_own(t.raw) for t in self._tools)
        if translated and self._has_functions and isinstance(tools, list) and len(tools) > 1:
            config["includeServerSideToolInvocations"] = True
        return config

    def _function(self, tool: Tool, path: str) -> Any:
        if is_own(tool.raw):
            return tool.raw.value
        warn_deferred(tool, self._notices)
        if tool.strict:
            self._notices.warn("strict-dropped", f"{path}.strict", "Gemini has no strict tools")
        written: Obj = {"name": self._names.out(tool.name, tool.namespace)}
        description, schema = self._defined(tool, path)
        if description:
            written["description"] = description
        # Not `parameters`: that is an OpenAPI subset, and Gemini refuses a request whose schema has any other
        # keyword (`$schema`, `const`, `exclusiveMinimum`, `oneOf`, …).
        return written | {"parametersJsonSchema": schema} | ((tool.extras or {}) if self._own else {})

    def _defined(self, tool: Tool, path: str) -> tuple[str | None, Obj]:
        if tool.kind == "custom":
            return emulated(tool, path, self._notices)
        dropped: list[str] = []
        schema = schemas.sanitised(tool.parameters, schemas.GEMINI, dropped.append)
        schemas.warn_dropped(dropped, f"{path}.parameters", self._notices)
        return tool.description, schema

    def _hosted(self, tool: Tool, path: str) -> Any:
        if is_own(tool.raw):
            return tool.raw.value
        kind = tool.hosted or tool.name
        server = _server(reachable(tool, path, filters=False)) if kind == "mcp" else None
        # A prefix, because Anthropic's types end with a date.
        name = next((v for k, v in _HOSTED.items() if kind.startswith(k)), None)
        apart = self._has_functions and self._target.takes.hosted_with_tools is False
        if apart or (server is None and name is None):
            self._notices.warn("hosted-tool-dropped", path, f"{self._target.model} cannot run {kind} here")
            return None
        warn_unlimited(limits_of(tool), (), path, self._notices)
        return {name: {}} if name else server

    def _calling(self) -> Obj | None:
        choice = self._choice
        if choice is None:
            return None
        if choice.mode in ("required", "named") and self._cannot_be_forced(choice):
            message = "Gemini can force only functions"
            self._notices.warn("forced-choice-downgraded", "settings.tool_choice", message)
            return None
        if not self._has_functions:
            return None
        if choice.mode == "none":
            return {"mode": "NONE"}
        if choice.mode == "named":
            name = self._declared(choice.name or "", choice.namespace)
            return {"mode": "ANY", "allowedFunctionNames": [name]}
        if choice.allowed is None:
            return {"mode": "ANY" if choice.mode == "required" else "AUTO"}
        # Of the modes in which the model decides, only `VALIDATED` accepts a list of names.
        mode = "ANY" if choice.mode == "required" else "VALIDATED"
        hosted = {tool.name for tool in self._tools if tool.kind == "hosted"}
        allowed = [self._declared(name) for name in choice.allowed if name not in hosted]
        return {"mode": mode, "allowedFunctionNames": allowed} if allowed else {"mode": "NONE"}

    def _cannot_be_forced(self, choice: ToolChoice) -> bool:
        if choice.mode == "required":
            return not self._has_functions
        return any(t.kind == "hosted" and choice.name in (t.name, t.hosted) for t in self._tools)

    def _declared(self, name: str, namespace: str | None = None) -> str:
        """The upstream's name of a tool in the tool choice, which must be among the sent tools."""
        for tool in self._tools:
            full = f"{tool.namespace}__{tool.name}" if tool.namespace else tool.name
            same = name == full or (name == tool.name and namespace in (None, tool.namespace))
            if tool.kind != "hosted" and same:
                return self._names.out(tool.name, tool.namespace)
        raise BadRequest(f"no tool {name!r} is declared", "settings.tool_choice")


def _server(server: ToolServer) -> Obj:
    transport: Obj = {"url": server.url}
    headers = dict(server.headers or {})
    if server.token:
        headers["Authorization"] = f"Bearer {server.token}"
    if headers:
        transport["headers"] = headers
    return {"mcpServers": [{"name": server.name, "streamableHttpTransport": transport}]}
