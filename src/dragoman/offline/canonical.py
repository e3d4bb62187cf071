"""The canonical form of a request: what it asks, in no protocol, without what changes from run to run.

Equal forms ask the same. The form holds the model, the conversation, the tools, whether one must be called,
and the output format. It leaves out all other settings, reasoning, cache marks, whether the answer is
streamed, members without neutral meaning, and headers. Ids of calls become numbers in the order of the calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ..model.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Refusal,
    Request,
    Search,
    Text,
    ToolCall,
    ToolResult,
)
from . import volatile

Form = dict[str, Any]


def canonical(request: Request) -> Form:
    """The canonical form of `request`: JSON values only."""
    reader = _CanonicalReader(request)
    settings = request.settings
    choice = settings.tool_choice
    form: Form = {
        "model": request.model.removeprefix("models/"),
        "messages": reader.messages(request.messages),
        "tools": {tool.name: reader.tool(tool) for tool in request.tools},
        "tool_choice": None if choice is None or choice.mode == "auto" else msgspec.to_builtins(choice),
        "format": None if settings.format is None else [settings.format.kind, settings.format.schema],
        "compact": settings.compact,
    }
    return reader.stable(form)


class _CanonicalReader:
    def __init__(self, request: Request) -> None:
        self._ids: dict[str, str] = {}
        found = {
            match[1].rstrip("./\\")
            for message in request.messages
            for part in message.parts
            if isinstance(part, Text)
            for match in volatile.WORKING_DIRECTORY.finditer(part.text)
        }
        found |= {volatile.NOT_IN_NAMES.sub("-", folder) for folder in found}
        # The longest first: one working directory may be below another.
        self._folders = sorted((folder for folder in found if len(folder) > 1), key=len, reverse=True)

    def messages(self, messages: Iterable[Message]) -> list[Form]:
        """One entry per role in turn: protocols divide a turn into messages differently."""
        turns: list[tuple[str, list[Part]]] = []
        for message in messages:
            role = "system" if message.role == "developer" else message.role
            if turns and turns[-1][0] == role:
                turns[-1][1].extend(message.parts)
            else:
                turns.append((role, list(message.parts)))
        return [{"role": role, "parts": forms} for role, parts in turns if (forms := self._parts(parts))]

    def tool(self, tool: Any) -> Form:
        form = {"kind": tool.kind, "description": tool.description, "parameters": tool.schema}
        return {**form, "hosted": tool.hosted} if tool.hosted else form

    def stable(self, value: Any) -> Any:
        """`value` with a name in place of everything that changes from run to run."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {key: self.stable(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, (list, tuple)):
            return [self.stable(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        return value

    def _text(self, text: str) -> str:
        for folder in self._folders:
            text = text.replace(folder, "<cwd>")
        for rule in volatile.TEXTS:
            text = rule.pattern.sub(f"<{rule.name}>", text)
        return text.strip()

    def _parts(self, parts: Iterable[Part]) -> list[Form]:
        """Neighbouring texts are one: Gemini's SDK sends every piece of a streamed text back by itself."""
        forms: list[Form] = []
        for part in parts:
            form = self._part(part)
            if form is None:
                continue
            if "text" in form and forms and "text" in forms[-1]:
                forms[-1]["text"] += form["text"]
            else:
                forms.append(form)
        return [form for form in forms if form.get("text", "-").strip()]

    def _part(self, part: Part) -> Form | None:
        match part:
            case Text(text) | Refusal(text):
                return {"text": text}
            case ToolCall():
                return {"call": self._id(part.id), "tool": part.name, "arguments": _arguments(part)}
            case ToolResult():
                return {"result_of": self._id(part.call_id), "parts": self._parts(part.parts)}
            case Media():
                content = part.data or part.url or part.file_id or part.text
                return {"media": part.kind, "content": content}
            case Opaque():
                return {"opaque": part.type}
            case Search():
                return {"search": part.query}
            case _:
                return None

    def _id(self, id: str) -> str:
        return self._ids.setdefault(id, f"call {len(self._ids) + 1}")


def _arguments(call: ToolCall) -> Any:
    try:
        return msgspec.json.decode(call.arguments) if call.kind == "function" else call.arguments
    except msgspec.DecodeError:
        return call.arguments
