"""Python callables as tools: the signature gives the JSON Schema and converts the arguments.

    def read_file(path: str, limit: int = 100) -> str:
        "Read a text file. A line `path: …` in the docstring describes that parameter."

The signature becomes a msgspec struct. The struct gives the JSON Schema, and converts valid arguments to the
annotated types. The model may omit a parameter with a default; Python then uses the default.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import msgspec

from ..model.messages import Tool

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_SECTION = re.compile(r"(?im)^\s*(args|arguments|parameters|params|returns?|raises|yields)\s*:?\s*$|^\s*:\w+")
_LINE = r"(?m)^\s*(?::param\s+(?:\w+\s+)?)?{name}\s*(?:\([^)\n]*\))?\s*:\s*(\S.*)$"
_REFERENCE = "#/$defs/{name}"


class LocalTool(msgspec.Struct, frozen=True):
    """A tool with its Python function."""

    tool: Tool
    function: Callable[..., Any]
    signature: inspect.Signature
    parameters: type[msgspec.Struct]

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def is_async(self) -> bool:
        function = self.function
        return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - an instance with `async def __call__`
        )

    def bind(self, arguments: dict[str, Any]) -> inspect.BoundArguments:
        """Convert the arguments to the function's types. A `ValueError` says which one does not fit."""
        values = msgspec.convert(arguments, self.parameters, str_keys=True, dec_hook=_read_custom)
        bound = inspect.BoundArguments(self.signature, {})  # pyright: ignore[reportArgumentType]
        for name in self.signature.parameters:
            value = getattr(values, name)
            if value is not msgspec.UNSET:
                bound.arguments[name] = value
        return bound


def local_tool(
    function: Callable[..., Any], *, name: str | None = None, description: str | None = None
) -> LocalTool:
    """`function` as a tool. `name` and `description` override the function's own."""
    name = str(name or getattr(function, "__name__", type(function).__name__))
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is not a valid tool name: use letters, digits, _ and -, at most 64 characters"
        )
    signature = inspect.signature(function)
    summary, notes = _documented(inspect.getdoc(function) or "", list(signature.parameters))
    fields = _fields(function, name, signature, notes)
    parameters = msgspec.defstruct(name, fields, forbid_unknown_fields=True, kw_only=True)
    tool = Tool(
        name=name,
        description=description or summary or None,
        parameters=_schema(parameters, signature),
    )
    return LocalTool(tool, function, signature, parameters)


def _fields(
    function: Callable[..., Any], name: str, signature: inspect.Signature, notes: dict[str, str]
) -> list[tuple[str, Any, Any]]:
    hints = _hints(function)
    fields: list[tuple[str, Any, Any]] = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(f"{name}: *{parameter.name} has no JSON Schema; name each parameter")
        kind: Any = hints.get(parameter.name, Any)
        optional = parameter.default is not parameter.empty
        if optional:
            kind = typing.Union[kind, msgspec.UnsetType]  # noqa: UP007 - `kind` is a value, not a type
        if parameter.name in notes:
            kind = typing.Annotated[kind, msgspec.Meta(description=notes[parameter.name])]
        default = msgspec.UNSET if optional else msgspec.NODEFAULT
        fields.append((parameter.name, kind, msgspec.field(default=default)))
    return fields


def _hints(function: Any) -> dict[str, Any]:
    while hasattr(function, "func"):  # functools.partial
        function = function.func
    described = inspect.unwrap(function)
    if not inspect.isroutine(described):
        described = type(described).__call__
    return typing.get_type_hints(described, include_extras=True)


def _schema(parameters: type[msgspec.Struct], signature: inspect.Signature) -> dict[str, Any]:
    carried: dict[str, Any] = {}
    (top,), components = msgspec.json.schema_components(
        [parameters],
        ref_template=_REFERENCE,
        schema_hook=lambda kind: _describe_custom(kind, carried),
    )
    own = top["$ref"].rpartition("/")[2]
    schema = components.pop(own)
    del schema["title"]
    for name, described in schema["properties"].items():
        default = signature.parameters[name].default
        if default is not inspect.Parameter.empty and _is_json(default):
            described.setdefault("default", msgspec.to_builtins(default))
    defined = {**components, **carried}
    return {**schema, "$defs": defined} if defined else schema


def _is_json(default: Any) -> bool:
    # Do not write a default of None into the schema: models that read `"default": null` send null for
    # parameters that do not allow it.
    try:
        return default is not None and bool(msgspec.json.encode(default))
    except (TypeError, ValueError):
        return False


def _describe_custom(kind: Any, carried: dict[str, Any]) -> dict[str, Any]:
    """The schema of types that msgspec does not know: paths and pydantic models."""
    if inspect.isclass(kind) and issubclass(kind, PurePath):
        return {"type": "string"}
    describe: Any = getattr(kind, "model_json_schema", None)
    if describe is None:
        raise NotImplementedError  # tells msgspec that this hook does not know the type
    schema: dict[str, Any] = describe()
    carried.update(schema.pop("$defs", {}))
    return schema


def _read_custom(kind: Any, value: Any) -> Any:
    return kind.model_validate(value) if hasattr(kind, "model_validate") else kind(value)


def _documented(doc: str, names: list[str]) -> tuple[str, dict[str, str]]:
    r"""The description of the function and of each parameter, from the docstring.

    >>> _documented("Read a file.\n\nArgs:\n    path: where it is", ["path"])
    ('Read a file.', {'path': 'where it is'})
    """
    notes: dict[str, str] = {}
    end = len(doc)
    for name in names:
        found = re.search(_LINE.format(name=re.escape(name)), doc)
        if found:
            notes[name] = found[1].strip()
            end = min(end, found.start())
    section = _SECTION.search(doc)
    return doc[: min(end, section.start() if section else end)].strip(), notes
