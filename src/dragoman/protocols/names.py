"""Tool names: legal for the target, and the client's own again when the model calls them.

Every tool a client offers becomes one name on the upstream's wire: namespaces are flattened
(`clock` + `now` → `clock__now`), illegal characters replaced, too-long names cut; whatever was changed
gets a short hash of the original, so two tools never share a name. The map back is built from the tools
of the very request, so it needs no memory.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

import msgspec

from ..messages import Tool


class NameRule(msgspec.Struct, frozen=True):
    """What a protocol accepts as a tool name."""

    pattern: str
    longest: int
    custom: bool = False
    """Does it know freeform tools? Otherwise they travel as functions with one string `input`."""
    namespaces: bool = False


class Called(msgspec.Struct, frozen=True):
    """Which of the client's tools an upstream name means."""

    tool: Tool
    wrapped: bool
    """A freeform tool that travels as a function: its input is the member `input`."""


class ToolNames:
    """The names of one request's tools, there and back."""

    def __init__(self, tools: Iterable[Tool], rule: NameRule) -> None:
        self._rule = rule
        self._called: dict[str, Called] = {}
        for tool in tools:
            if tool.kind == "hosted":
                continue
            wrapped = tool.kind == "custom" and not rule.custom
            self._called.setdefault(self.out(tool.name, tool.namespace), Called(tool, wrapped))

    def out(self, name: str, namespace: str | None = None) -> str:
        """The name on the upstream's wire. The same for declared tools and for names in the history."""
        full = f"{namespace}__{name}" if namespace and not self._rule.namespaces else name
        if 0 < len(full) <= self._rule.longest and re.fullmatch(self._rule.pattern, full):
            return full
        digest = hashlib.sha256(full.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        clean = re.sub(r"[^A-Za-z0-9_-]", "_", full)[: self._rule.longest - 9]
        return f"{clean if clean[:1].isalpha() else 't' + clean[1:]}_{digest}"

    def called(self, upstream_name: str) -> Called | None:
        """The client's tool behind a name the upstream used, if it is one of them."""
        return self._called.get(upstream_name)

    def declared(self) -> dict[str, Called]:
        """All of them, by upstream name."""
        return self._called
