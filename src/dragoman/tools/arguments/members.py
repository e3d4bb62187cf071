"""Decides for each member of the arguments: pass, hold, rename, fill, drop or unwrap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..json_text import dump, quote
from ..rules.names import claims
from ..rules.rule import ABSENT, Place
from ..rules.syntax import find_payload, looks_like_wrapper
from ..rules.tables import squash
from .context import CallContext
from .mending import Mender
from .writer import Member, MemberWriter

TOOL_NAMES = frozenset({"name", "tool", "toolname", "function", "functionname"})


class MemberResolver:
    """The members of one call's arguments, resolved while they arrive."""

    def __init__(self, call: CallContext, opening: str) -> None:
        self._call = call
        self._node = call.schema.root
        self.writer = MemberWriter(opening, overtaking=self._node.closed)
        self._place = Place(call.name)
        self._mender = Mender(call.name, call.rules, call.fixes)
        self._present: set[str] = set()
        self._held: dict[str, Any] = {}  # held values of declared members
        self._unknown: dict[str, Any] = {}  # values of pending, undeclared members
        # If the schema accepts any object, the object is never a wrapper: valid input is not changed.
        self._may_wrap = (self._node.closed or bool(self._node.required)) and call.rules.on("wrapper")

    def streams(self, name: str) -> bool:
        """A member with this name begins. Return whether a string value may pass while it arrives."""
        is_new = name in self._node.properties and name not in self._present
        self._present.add(name)
        if self._may_wrap and is_new and self._may_name_tool(name):
            return False  # hold the value: it shows whether this `name` is the tool's own
        if self._may_wrap and (is_new or not looks_like_wrapper(name, self._call.name)):
            self._may_wrap = self.writer.endless = False
            is_new = True  # no wrapper after all: pending members may be decided now
        if is_new and (self.writer.waiting or self.writer.overtaken):
            self.writer.settle(lambda member: self._pending(member.name))
        if self._pending(name):
            self.writer.endless = self._may_wrap
            return False
        return self._node.member(name).takes_any_text

    def hold(self, member: Member, text: str, value: Any) -> None:
        """Take a complete member. `text` is its value as strict JSON."""
        name = member.name
        if self._may_wrap and name in self._node.properties:
            # `{"name": …}` may begin a wrapper only if the value is this tool's name.
            self._may_wrap = self.writer.endless = value == self._call.name
        if self._pending(name) or self.writer.endless:
            member.pending = True
            self._unknown[name] = value
        else:
            place = self._place.member(name, name in self._node.required)
            before = self._call.fixes.count
            value = self._mender.value(value, self._node.member(name), place)
            if value is ABSENT:
                self._present.discard(name)
                return
            if self._call.fixes.count > before:
                text = dump(value)
            self._held[name] = value
        member.parts = [text]
        self.writer.add(member)

    def close(self, closing: str) -> None:
        """The object is over: resolve pending members, add missing ones, write the end."""
        writer = self.writer
        pending = [member for member in (*writer.waiting, *writer.overtaken) if member.pending]
        if self._may_wrap and pending and self._unwrap(pending):
            return
        undeclared = [member.name for member in pending if member.name not in self._node.properties]
        self._unknown = {name: self._unknown[name] for name in undeclared}
        self._rename(pending)
        filled = list(self._fill())
        self._drop()
        writer.settle(lambda _: False)
        for member in filled:
            writer.add(member)
        writer.close(closing)

    def _pending(self, name: str) -> bool:
        """Whether the decision about a member depends on members that may still arrive."""
        if name in self._node.properties:
            return False
        if self._may_wrap or self._node.closed:
            return True
        missing = [target for target in self._node.required if target not in self._present]
        if claims(name, missing, self._place, self._call.rules.names):
            return True
        return self._mender.respelled(name, self._present, self._node) is not None

    def _may_name_tool(self, name: str) -> bool:
        """Whether this may be the `name` of a wrapper, for a tool that has a parameter `name` too."""
        return len(self._present) == 1 and squash(name) in TOOL_NAMES

    def _rename(self, pending: list[Member]) -> None:
        if not pending:
            return
        renamed = self._mender.rename(self._unknown, self._present, self._node, self._place)
        for member in pending:
            found = renamed.get(member.name)
            if found is None:
                continue
            if found.value != self._unknown[member.name]:
                member.parts = [dump(found.value)]
            member.key = quote(found.target)
            self._present.add(found.target)
            self._held[found.target] = found.value
        for name in renamed:
            del self._unknown[name]

    def _fill(self) -> Iterator[Member]:
        present: dict[str, Any] = {**dict.fromkeys(self._present, ABSENT), **self._held}
        for name, value in self._mender.missing(present, self._node, self._place).items():
            self._present.add(name)
            member = Member("", quote(name), ": ", name)
            member.parts = [dump(value)]
            yield member

    def _drop(self) -> None:
        if self._unknown:
            values = {**self._held, **self._unknown}
            dropped = set(self._mender.droppable(values, self._present, self._node, self._place))
            self.writer.drop(lambda member: member.pending and member.name in dropped)

    def _unwrap(self, pending: list[Member]) -> bool:
        """If the object is a wrapper, write the arguments inside it instead. False if it is not."""
        outer = {member.name: self._unknown[member.name] for member in pending}
        name = find_payload(outer, self._call.name)
        if name is None:
            return False
        text = next("".join(member.parts) for member in pending if member.name == name)
        found = self._call.correct_inner(text)
        if found is None:
            return False
        corrected, value, fixes = found
        named = self._call.name in [inner for inner in outer.values() if isinstance(inner, str)]
        known = any(member in self._node.properties for member in value)
        if not (named or known or self._call.schema.fits(value)):
            return False
        self._call.fixes.add("wrapper", f"/{name}", dump(outer), corrected)
        self._call.fixes.extend(fixes)
        self.writer.out.append(corrected)
        return True
