"""Make tool names legal for the upstream, and map the upstream's names back to the client's tools.

Namespaces are flattened (`clock` + `now` → `clock__now`), illegal characters are replaced, and long names are
cut. A name that changed, or that would equal the name of another tool, gets a short hash of the original. So
two tools never share a name. The reverse map is built from the tools of the same request and needs no stored
state. If the upstream supports namespaces, a tool keeps its namespace and its name.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from ...model.messages import Tool

_Key = str | tuple[str, str]
"""A name, or a namespace and a name."""


# Hosted tools that make the model call names which no client declares: Gemini's computer use calls
# `click_at`.
_WITH_UNDECLARED_CALLS = frozenset({"computerUse", "computer_use", "computer"})


def _key(namespace: str | None, name: str) -> _Key:
    return (namespace, name) if namespace else name


class NameRule(msgspec.Struct, frozen=True):
    """The tool names that a protocol accepts."""

    pattern: str
    max_length: int = msgspec.field(name="longest")  # its name in recordings
    custom: bool = False
    """Does it support freeform tools? Otherwise they become functions with one string `input`."""
    namespaces: bool = False

    def allows(self, name: str) -> bool:
        return 0 < len(name) <= self.max_length and re.fullmatch(self.pattern, name) is not None


class CalledTool(msgspec.Struct, frozen=True, gc=False):
    """The client's tool that an upstream's name refers to."""

    tool: Tool
    wrapped: bool
    """A freeform tool that the upstream sees as a function. Its text is in the member `input`."""


Derived = TypeVar("Derived")


class ToolNames:
    """Maps the tool names of one request to the upstream's names, and back."""

    def __init__(self, tools: Iterable[Tool], rule: NameRule) -> None:
        self._rule = rule
        self._notes: dict[tuple[str, ...], Any] = {}
        tools = tuple(tools)
        self._hosted: frozenset[str] = frozenset()
        named = {t.name: CalledTool(t, False) for t in tools if t.kind == "function" and not t.namespace}
        # Nearly always all tools are functions with distinct legal names.
        usual = len(named) == len(tools) and all(map(rule.allows, named))
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
        # A tool `a__b` and the tool `b` in the namespace `a` would get the same name.
        if _key(space, given) in self._by_key:
            given = self._hashed(given, f"{namespace or ''}\n{name}")
        called = CalledTool(tool, kind == "custom" and not self._rule.custom)
        self._out[key] = given
        self._by_key[_key(space, given)] = called
        self._by_name.setdefault(given, called)

    def note(self, key: tuple[str, ...], make: Callable[[], Derived]) -> Derived:
        """Cache a value that is derived from these tools, such as a parsed schema."""
        found = self._notes.get(key)
        if found is None:
            found = self._notes[key] = make()
        return found

    @property
    def rule(self) -> NameRule:
        """The upstream's rule for names."""
        return self._rule

    def out(self, name: str, namespace: str | None = None) -> str:
        """The upstream's name for a tool. Declared tools and tools in the history get the same name."""
        key = (namespace, name) if namespace else name
        return self._out.get(key) or self._elsewhere(name, namespace)

    def _elsewhere(self, name: str, namespace: str | None) -> str:
        """The name of a tool that is not declared in this namespace, but perhaps without it or in another.

        OpenAI's tool search gives a call of a function that has no namespace one that is named like the
        function. A client that does not know namespaces leaves them out.
        """
        if namespace is not None:
            known = any(isinstance(key, tuple) and key[0] == namespace for key in self._out)
            meant = None if known else self._out.get(name)
        else:
            same = [out for key, out in self._out.items() if isinstance(key, tuple) and key[1] == name]
            meant = same[0] if len(same) == 1 else None
        return meant or self._legal(self._full(namespace, name))

    def called(self, upstream_name: str, namespace: str | None = None) -> CalledTool | None:
        """The client's tool for a name in the upstream's answer; None if no tool has this name."""
        if namespace and not self._rule.namespaces:
            # A call of an Anthropic toolset names the set separately (`toolset_name`).
            flat = self._out.get((namespace, upstream_name))
            return None if flat is None else self._by_name.get(flat)
        exact = self._by_key.get(_key(namespace, upstream_name))
        # Models leave out the namespace. Then the first tool with this name matches.
        return exact or (None if namespace else self._by_name.get(upstream_name))

    def offers(self, upstream_name: str, namespace: str | None = None) -> bool:
        """May the model call a tool of this name? True if the client declared no tools.

        The names inside a toolset or another provider-defined tool are not all known here, so they are
        allowed.
        """
        if not self.knows_tools or self.called(upstream_name, namespace) is not None:
            return True
        if namespace and (
            any(called.tool.namespace == namespace for called in self._by_name.values())
            or any(name.endswith("toolset") for name in self._hosted)
        ):
            return True
        return upstream_name in self._hosted or not self._hosted.isdisjoint(_WITH_UNDECLARED_CALLS)

    @property
    def knows_tools(self) -> bool:
        """Did the client declare any tools?"""
        return bool(self._by_name or self._hosted)

    def hosts(self, name: str) -> bool:
        """Is this the name of a hosted tool, which the provider runs?"""
        return name in self._hosted

    def originals(self) -> dict[str, str]:
        """The upstream's names of tools whose own name is not legal there: models write that one, too."""
        changed = [(called.tool.name, name) for name, called in self._by_name.items()]
        count = Counter(original for original, _ in changed)
        return {
            original: name
            for original, name in changed
            if original != name and count[original] == 1 and original not in self._by_name
        }

    def declared(self) -> dict[str, CalledTool]:
        """All tools by upstream name. If several namespaces share a name, the first tool."""
        return self._by_name

    def _full(self, namespace: str | None, name: str) -> str:
        return f"{namespace}__{name}" if namespace and not self._rule.namespaces else name

    def _legal(self, full: str) -> str:
        return full if self._rule.allows(full) else self._hashed(full, full)

    def _hashed(self, full: str, original: str) -> str:
        digest = hashlib.sha256(original.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        # MCP allows `.` and `/` in names, OpenAI and Anthropic do not. Kimi and Gemini also require a letter
        # at the start.
        clean = re.sub(r"[^A-Za-z0-9_-]", "_", full)[: self._rule.max_length - 9]
        return f"{clean if clean[:1].isalpha() else 't' + clean[1:]}_{digest}"
