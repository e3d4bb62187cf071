"""Corrects one JSON object while it streams. This is the core of `live` assembly.

`Corrector` is a strict JSON reader with one method per state. A declared string member passes while it
arrives. A member that may need mending is held until it is complete. At the first damage that cannot be
mended in place, the corrector holds everything that follows. At the end of the call the lenient reader
(`rules/lenient_json.py`) rewrites the damaged part as strict JSON, and the same methods read that.

The output depends only on the characters, never on how they were cut into fragments. That is why `live`
and `whole` agree: `whole` feeds the same corrector once. A JSON-repair library was rejected for this
reason: such libraries need the whole text, and they complete text that was cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ...wire.jsonscan import LEGAL_RUN, WHITESPACE, JsonScanner, StringScanner, match_end
from ..json_text import NotJson, parse_exact
from ..rules.lenient_json import LenientReader, Unreadable
from ..rules.syntax import closing_text, comma_is_wrong
from .context import CallContext
from .members import MemberResolver
from .repair import legal_character, strict_value
from .writer import OpenMember

_PLAIN_HEAD = re.compile(r'("[^"\\\x00-\x1f]*+")([ \t\n\r]*+:[ \t\n\r]*+)')
_SCALAR = re.compile(r"[\w.+-]*+")
_PARTIAL_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")

_State = Callable[["Corrector", str, int], int]
"""Reads from a position of the text and returns the position after what it read."""


class Corrector:
    """Reads the text after an opening brace, fragment by fragment, and writes the corrected object."""

    def __init__(self, call: CallContext, opening: str) -> None:
        self.closed = False
        self.closed_by_rule = False  # a rule added the closing brackets
        self.empty = True  # no member was read yet
        self._passing = False  # the next text is inside a string that passes unchanged
        self._call = call
        self._members = MemberResolver(call, opening)
        self._writer = self._members.writer
        self.out = self._writer.out  # text that may go to the client now
        self._state: _State = Corrector._before_key  # a bound method would be a cycle
        self._member: OpenMember | None = None
        self._gap: list[str] = []  # whitespace before the next key
        self._comma = False  # a comma was read, and no key after it
        self.carry = ""  # an escape that the last fragment cut
        self._damage: list[str] | None = None  # everything from the first damage on
        self._string = StringScanner()
        self._nested = JsonScanner()

    @property
    def damaged(self) -> bool:
        """Whether the text stopped being JSON before the object ended."""
        return self._damage is not None

    def feed(self, text: str, pos: int = 0) -> str:
        """Read `text` from `pos`. Return the text after the object, if the object ends in it."""
        if self.carry:
            text, pos, self.carry = self.carry + text[pos:], 0, ""
        while pos < len(text) and not self.closed:
            pos = self._state(self, text, pos)
        self._passing = self._state is Corrector._pass_string and not self._writer.waiting
        return text[pos:]

    def pass_on(self, fragment: str) -> str | None:
        """Fast path: the output for a fragment inside a string that passes. None for any other fragment.

        Nearly all fragments of a long call take this path: the body of a file or a patch. An escape that
        the fragment cuts waits for the next fragment.
        """
        if not self._passing:
            return None
        text = self.carry + fragment if self.carry else fragment
        if LEGAL_RUN.fullmatch(text):
            self.carry = ""
            return text
        end = match_end(LEGAL_RUN, text, 0)
        if not _PARTIAL_ESCAPE.fullmatch(text, end):
            return None
        self.carry = text[end:]
        return text[:end]

    def write_end(self) -> None:
        """Resolve the members that still wait, and write the end of the object."""
        self._members.close("".join((*self._gap, "}")))

    def finish(self, ended: bool) -> tuple[bool, str]:
        """The text is over. Return whether the object is complete, and the text after it.

        `ended`: the upstream said that the call is finished, so missing closing brackets may be added.
        """
        rest = self._mend_damage() if self._damage is not None else ""
        if ended and not self.closed and self._damage is None:
            self._close_brackets()
        return self.closed, rest

    # States before a value.

    def _before_key(self, text: str, pos: int) -> int:
        end = match_end(WHITESPACE, text, pos)
        self._gap.append(text[pos:end])
        if end == len(text):
            return end
        if text[end] == '"' and self._write_member():
            self._member = OpenMember(self._gap)
            self._gap, self._comma = [], False
            return self._begin_key(text, end)
        if text[end] == "}":
            return self._end_object(text, end)
        return self._break(text, end)

    def _begin_key(self, text: str, pos: int) -> int:
        head = _PLAIN_HEAD.match(text, pos)
        if head and head.end() < len(text):  # usually key and colon are in one fragment
            self._open.key = [head.group(1)]
            self._open.mid = [head.group(2)]
            self._open.name = head.group(1)[1:-1]
            return self._begin_value(text, head.end())
        self._state = Corrector._in_key
        return pos + 1

    def _in_key(self, text: str, pos: int) -> int:
        quote = self._string.scan(text, pos)
        end = len(text) if quote < 0 else quote + 1
        self._open.key.append(text[pos:end])
        if quote >= 0:
            self._state = Corrector._before_colon
        return end

    def _before_colon(self, text: str, pos: int) -> int:
        end = match_end(WHITESPACE, text, pos)
        self._open.mid.append(text[pos:end])
        if end == len(text):
            return end
        if text[end] != ":":
            return self._break(text, end)
        self._open.mid.append(":")
        self._state = Corrector._before_value
        return end + 1

    def _before_value(self, text: str, pos: int) -> int:
        end = match_end(WHITESPACE, text, pos)
        self._open.mid.append(text[pos:end])
        if end == len(text):
            return end
        try:
            self._open.name = str(parse_exact("".join(self._open.key)))
        except NotJson:
            return self._break(text, end)
        return self._begin_value(text, end)

    def _begin_value(self, text: str, pos: int) -> int:
        char, member = text[pos], self._open
        self.empty = False
        may_pass = self._members.streams(member.name)
        if char == '"' and may_pass:
            member.passing = True
            self._writer.begin(member.started())
            self._writer.write('"')
            self._state = Corrector._pass_string
            return pos + 1
        if char == '"':
            member.value.append('"')
            self._state = Corrector._hold_string
            return pos + 1
        if char in "{[":
            self._nested = JsonScanner()
            self._state = Corrector._hold_nested
            return pos
        self._state = Corrector._hold_scalar
        return pos if _SCALAR.fullmatch(char) else self._break(text, pos)

    # States in and after a value.

    def _pass_string(self, text: str, pos: int) -> int:
        end = match_end(LEGAL_RUN, text, pos)
        if end > pos:
            self._writer.write(text[pos:end])
        if end == len(text):
            return end
        char = text[end]
        if char == '"':
            return self._end_value('"', end + 1)
        if char == "\\" and _PARTIAL_ESCAPE.fullmatch(text, end):
            self.carry = text[end:]
            return len(text)
        return self._mend_in_passing(text, end)

    def _mend_in_passing(self, text: str, pos: int) -> int:
        before = text[pos : pos + 2] if text[pos] == "\\" else text[pos]
        after = legal_character(before, self._open.name, self._call)
        if after is None:
            return self._break(text, pos)
        self._writer.write(after)
        return pos + len(before)

    def _hold_string(self, text: str, pos: int) -> int:
        quote = self._string.scan(text, pos)
        end = len(text) if quote < 0 else quote + 1
        self._open.value.append(text[pos:end])
        return self._end_value("", end) if quote >= 0 else end

    def _hold_nested(self, text: str, pos: int) -> int:
        end = self._nested.scan(text, pos)
        self._open.value.append(text[pos:end])
        if self._nested.state == "broken":
            return self._break(text, end)
        return self._end_value("", end) if self._nested.state == "complete" else end

    def _hold_scalar(self, text: str, pos: int) -> int:
        end = match_end(_SCALAR, text, pos)
        self._open.value.append(text[pos:end])
        return self._end_value("", end) if end < len(text) else end

    def _end_value(self, closing: str, pos: int) -> int:
        # A quote closes the string only if a comma or a brace follows: models forget to escape quotes.
        self._open.tail.append(closing)
        self._state = Corrector._after_value
        return pos

    def _after_value(self, text: str, pos: int) -> int:
        end = match_end(WHITESPACE, text, pos)
        self._open.tail.append(text[pos:end])
        if end == len(text):
            return end
        if text[end] == ",":
            self._comma = True
            self._state = Corrector._before_key
            return end + 1
        return self._end_object(text, end) if text[end] == "}" else self._break(text, end)

    # The end of a member, and of the object.

    def _write_member(self) -> bool:
        """Write the member that was read last. False if its value is not JSON."""
        member = self._member
        if member is None:
            return True
        if member.passing:
            self._writer.end("".join(member.tail))
            return True
        strict = strict_value("".join(member.value), member.name, self._call)
        if strict is None:
            return False
        read = member.started()
        read.tail = "".join(member.tail)
        self._members.hold(read, *strict)
        return True

    def _end_object(self, text: str, pos: int) -> int:
        surplus = comma_is_wrong(int(self._comma), wanted=0)
        if (surplus and not self._call.rules.on("commas")) or not self._write_member():
            return self._break(text, pos)
        if surplus:
            self._call.fixes.add("commas", "", ",}", "}")
        self.closed = True
        if not self.empty:
            self.write_end()
        return pos + 1

    def _close_brackets(self) -> None:
        """Add missing brackets: never inside a string, never where a key or value is missing."""
        if self._state not in (Corrector._hold_nested, Corrector._hold_scalar, Corrector._after_value):
            return
        nested = self._state is Corrector._hold_nested
        closers = self._nested.closers() if nested else ""
        closing = closing_text("".join(self._open.value), closers)
        if closing is None or not self._call.rules.on("missing-closing-brackets"):
            return
        self.feed(closing)
        self.closed_by_rule = self.closed
        if self.closed:
            self._call.fixes.add("missing-closing-brackets", "", "", closing)

    # Damage.

    @property
    def _open(self) -> OpenMember:
        if self._member is None:
            self._member = OpenMember([])
        return self._member

    def _break(self, text: str, pos: int) -> int:
        """The text is not JSON from here on: hold the unsent part and everything that follows."""
        unsent = self._member.unsent() if self._member else ""
        gap = "".join(self._gap)
        self._damage = [unsent, "," if self._comma else "", gap, text[pos:]]
        self._state = Corrector._hold_damage
        return len(text)

    def _hold_damage(self, text: str, pos: int) -> int:
        assert self._damage is not None
        self._damage.append(text[pos:])
        return len(text)

    def _mend_damage(self) -> str:
        """Rewrite the damaged part as strict JSON and read that. Return the text after the object."""
        text = "".join(self._damage or ())
        reader = LenientReader(text, self._call.rules.on)
        in_string = self._member is not None and self._member.passing
        try:
            # Outside a string, the text begins with a member: the comma before it was already read.
            end = reader.members(reader.rest_of_string(0) if in_string else 0, first=not in_string)
        except Unreadable:
            return ""
        for rule, around in reader.used.items():
            self._call.fixes.add(rule, "", around, "")
        self._damage, self._comma, self._gap = None, False, []
        if in_string:
            self._open.tail = []
            self._state = Corrector._pass_string
        else:
            self._member = None
            self._state = Corrector._before_key
        self.feed("".join(reader.out))
        return text[end:]
