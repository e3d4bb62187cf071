"""Decides what happens to each member of the arguments: pass, hold, rename, fill, drop, unwrap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..json_text import dump, quote
from ..rules import Fix, FixBook, Rules
from ..rules.names import claims
from ..rules.rule import ABSENT, Place
from ..rules.syntax import find_payload, looks_like_wrapper
from ..rules.tables import squash
from ..schema import ToolSchema
from .mending import Mender
from .writer import Member, MemberWriter

TOOL_NAMES = frozenset({"name", "tool", "toolname", "function", "functionname"})

# Corrects a text found inside the arguments as if it were the arguments: text, value and fixes.
Inner = tuple[str, dict[str, Any], list[Fix]]


class Call:
    """What every part of one call's correction needs to know."""

    __slots__ = ("_noted", "book", "inner", "name", "rules", "schema")

    def __init__(
        self, name: str, schema: ToolSchema, rules: Rules, inner: Callable[[str], Inner | None]
    ) -> None:
        self.name = name
        self.schema = schema
        self.rules = rules
        self.book = FixBook()
        self.inner = inner
        self._noted: set[tuple[str, str]] = set()

    def note_once(self, rule: str, path: str, before: str, after: str) -> None:
        """Write a fix down unless this rule is already on record for this place."""
        if (rule, path) not in self._noted:
            self._noted.add((rule, path))
            self.book.add(rule, path, before, after)


class ObjectPlan:
    """The members of the arguments of one call, as they become known."""

    def __init__(self, call: Call, opening: str) -> None:
        self._call = call
        self._node = call.schema.root
        self.writer = MemberWriter(opening, overtaking=self._node.closed)
        self._place = Place(call.name)
        self._mender = Mender(call.name, call.rules, call.book)
        self._present: set[str] = set()
        self._held: dict[str, Any] = {}  # values of declared members that were held
        self._unknown: dict[str, Any] = {}  # values of undeclared members that are pending
        # Only an object that cannot fit as it is may be a wrapper.
        self._may_wrap = (self._node.closed or bool(self._node.required)) and call.rules.on("wrapper")

    def streams(self, name: str) -> bool:
        """A member of this name begins; gives whether a string there may pass as it comes."""
        news = name in self._node.properties and name not in self._present
        self._present.add(name)
        if self._may_wrap and news and self._may_name_tool(name):
            return False
        if self._may_wrap and (news or not looks_like_wrapper(name, self._call.name)):
            self._may_wrap = self.writer.endless = False
            news = True
        if news and (self.writer.waiting or self.writer.overtaken):
            self.writer.settle(lambda member: self._pending(member.name))
        if self._pending(name):
            self.writer.endless = self._may_wrap
            return False
        return self._node.member(name).takes_any_text

    def hold(self, member: Member, text: str, value: Any) -> None:
        """A member is complete; `text` is its value as strict JSON."""
        name = member.name
        if self._may_wrap and name in self._node.properties:
            # Only the tool's own name as the first member keeps a wrapper possible.
            self._may_wrap = self.writer.endless = value == self._call.name
        if self._pending(name) or self.writer.endless:
            member.pending = True
            self._unknown[name] = value
        else:
            place = self._place.member(name, name in self._node.required)
            before = self._call.book.count
            value = self._mender.value(value, self._node.member(name), place)
            if value is ABSENT:
                self._present.discard(name)
                return
            if self._call.book.count > before:
                text = dump(value)
            self._held[name] = value
        member.parts = [text]
        self.writer.add(member)

    def close(self, closing: str) -> None:
        """The object is over: decide what is pending, add what is missing, write the end."""
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
        """Whether what becomes of a member depends on members that may still come."""
        if name in self._node.properties:
            return False
        if self._may_wrap or self._node.closed:
            return True
        missing = [target for target in self._node.required if target not in self._present]
        if claims(name, missing, self._place, self._call.rules.names):
            return True
        return self._mender.respelled(name, self._present, self._node) is not None

    def _may_name_tool(self, name: str) -> bool:
        """`{"name": …, "arguments": …}` around the arguments of a tool that itself takes a `name`."""
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
            gone = set(self._mender.droppable(values, self._present, self._node, self._place))
            self.writer.drop(lambda member: member.pending and member.name in gone)

    def _unwrap(self, pending: list[Member]) -> bool:
        """Replace the object by the arguments it is wrapped around, if it is."""
        outer = {member.name: self._unknown[member.name] for member in pending}
        name = find_payload(outer, self._call.name)
        if name is None:
            return False
        text = next("".join(member.parts) for member in pending if member.name == name)
        found = self._call.inner(text)
        if found is None:
            return False
        corrected, value, fixes = found
        named = self._call.name in [inner for inner in outer.values() if isinstance(inner, str)]
        known = any(member in self._node.properties for member in value)
        if not (named or known or self._call.schema.fits(value)):
            return False
        self._call.book.add("wrapper", f"/{name}", dump(outer), corrected)
        self._call.book.extend(fixes)
        self.writer.out.append(corrected)
        return True
