"""Tool names: legal for the target, and the client's own again when the model calls them.

Every tool a client offers becomes one name on the upstream's wire: namespaces are flattened
(`clock` + `now` → `clock__now`), illegal characters replaced, too-long names cut; whatever was changed, or
would be another tool's name, gets a short hash of the original, so two tools never share a name. The map
back is built from the tools of the very request, so it needs no memory. Where the upstream has namespaces
itself, a tool is known by both of its names there too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from ...model.messages import Tool

_Key = str | tuple[str, str]
"""A name, or a namespace and a name."""


# Of those that were found legal, which come again with every list of tools, so many are remembered.
_MOST = 4096
_SHORT = 128


@lru_cache(maxsize=64)
def _matcher(pattern: str, longest: int) -> tuple[Callable[[str], re.Match[str] | None], set[str]]:
    """Tells whether a name is legal, and the names of which it was told."""
    return re.compile(pattern).fullmatch, set()


# Gemini's computer use calls `click_at` and other names that nobody declares.
_WITH_TOOLS_OF_THEIR_OWN = frozenset({"computerUse", "computer_use", "computer"})


def _key(namespace: str | None, name: str) -> _Key:
    return (namespace, name) if namespace else name


class NameRule(msgspec.Struct, frozen=True):
    """What a protocol accepts as a tool name."""

    pattern: str
    longest: int
    custom: bool = False
    """Does it know freeform tools? Otherwise they travel as functions with one string `input`."""
    namespaces: bool = False


class CalledTool(msgspec.Struct, frozen=True, gc=False):
    """Which of the client's tools an upstream name means."""

    tool: Tool
    wrapped: bool
    """A freeform tool that travels as a function: its input is the member `input`."""


Note = TypeVar("Note")


class ToolNames:
    """The names of one request's tools, there and back."""

    def __init__(self, tools: Iterable[Tool], rule: NameRule) -> None:
        self._rule = rule
        self._allows, self._found_legal = _matcher(rule.pattern, rule.longest)
        self._notes: dict[tuple[str, ...], Any] = {}
        tools = tuple(tools)
        self._hosted: frozenset[str] = frozenset()
        named = {t.name: CalledTool(t, False) for t in tools if t.kind == "function" and not t.namespace}
        # Nearly always they are functions with names of their own, which were seen before.
        usual = len(named) == len(tools) and named.keys() <= self._found_legal
        self._out: dict[_Key, str] = dict(zip(named, named, strict=True)) if usual else {}
        self._by_key: dict[_Key, CalledTool] = {**named} if usual else {}
        self._by_name: dict[str, CalledTool] = named if usual else {}
        if not usual:
            self._hosted = frozenset(n for t in tools if t.kind == "hosted" for n in (t.name, t.hosted) if n)
            for tool in tools:
                self._add(tool)

    def _add(self, tool: Tool) -> None:
        kind, namespace, name = tool.kind, tool.namespace, tool.name
        key = _key(namespace, name)
        if kind == "hosted" or key in self._out:
            return
        given = self._legal(self._full(namespace, name))
        space = namespace if self._rule.namespaces else None
        # `a__b` may be a tool's own name, or `b` in the namespace `a`: not both.
        if _key(space, given) in self._by_key:
            given = self._hashed(given, f"{namespace or ''}\n{name}")
        called = CalledTool(tool, kind == "custom" and not self._rule.custom)
        self._out[key] = given
        self._by_key[_key(space, given)] = called
        self._by_name.setdefault(given, called)

    def note(self, key: tuple[str, ...], make: Callable[[], Note]) -> Note:
        """What somebody worked out about these tools: once for all answers that may call them."""
        found = self._notes.get(key)
        if found is None:
            found = self._notes[key] = make()
        return found

    @property
    def rule(self) -> NameRule:
        """What the upstream accepts as a name."""
        return self._rule

    def out(self, name: str, namespace: str | None = None) -> str:
        """The name on the upstream's wire. The same for declared tools and for names in the history."""
        key = (namespace, name) if namespace else name
        return self._out.get(key) or self._legal(self._full(namespace, name))

    def called(self, upstream_name: str, namespace: str | None = None) -> CalledTool | None:
        """The client's tool behind a name the upstream used, if it is one of them."""
        if namespace and not self._rule.namespaces:
            # Anthropic's toolsets: the calls of an upstream that has them name the set beside the tool.
            flat = self._out.get((namespace, upstream_name))
            return None if flat is None else self._by_name.get(flat)
        exact = self._by_key.get(_key(namespace, upstream_name))
        # A model may leave the namespace out; then any tool of the name will do.
        return exact or (None if namespace else self._by_name.get(upstream_name))

    def offers(self, upstream_name: str, namespace: str | None = None) -> bool:
        """May the model call a tool of this name? Where the client declared no tools, nobody knows.

        Of what the provider defines, such as a toolset, not all names may be known here.
        """
        if not self.knows_tools or self.called(upstream_name, namespace) is not None:
            return True
        if namespace and (
            any(called.tool.namespace == namespace for called in self._by_name.values())
            or any(name.endswith("toolset") for name in self._hosted)
        ):
            return True
        return upstream_name in self._hosted or not self._hosted.isdisjoint(_WITH_TOOLS_OF_THEIR_OWN)

    @property
    def knows_tools(self) -> bool:
        """Did the client declare any?"""
        return bool(self._by_name or self._hosted)

    def hosts(self, name: str) -> bool:
        """Is it the name of a tool that the client wants the provider to run?"""
        return name in self._hosted

    def declared(self) -> dict[str, CalledTool]:
        """All of them, by upstream name; of several in different namespaces the first."""
        return self._by_name

    def _full(self, namespace: str | None, name: str) -> str:
        return f"{namespace}__{name}" if namespace and not self._rule.namespaces else name

    def _legal(self, full: str) -> str:
        if full in self._found_legal:
            return full
        if 0 < len(full) <= self._rule.longest and self._allows(full):
            if len(full) <= _SHORT and len(self._found_legal) < _MOST:
                self._found_legal.add(full)
            return full
        return self._hashed(full, full)

    def _hashed(self, full: str, original: str) -> str:
        digest = hashlib.sha256(original.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        clean = re.sub(r"[^A-Za-z0-9_-]", "_", full)[: self._rule.longest - 9]
        return f"{clean if clean[:1].isalpha() else 't' + clean[1:]}_{digest}"
