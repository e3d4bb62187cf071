"""Corrects one JSON object while it streams: the heart of `live`.

A strict reader with one step per state. It lets declared members of the right type pass, holds back a
member that may need mending until it is complete, and stops being clever at the first damage it cannot
mend in passing: from there it holds everything and, at the end, has `loose` rewrite the remainder as
strict JSON, which then runs through the very same steps.

What comes out depends on the characters alone, never on how they were cut into fragments. That is what
makes `live` and `whole` agree: `whole` is this same machine, fed once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...wire.jsonscan import LEGAL_RUN, WHITESPACE, JsonScanner, StringScanner
from ..json_text import NotJson, parse_exact
from ..rules.lenient_json import LooseReader, Unreadable, read_value
from ..rules.syntax import (
    closing_text,
    comma_is_wrong,
    escape_control,
    is_json_scalar,
    mend_escape,
    mend_word,
)
from .members import Call, ObjectPlan
from .writer import Member

_PLAIN_HEAD = re.compile(r'("[^"\\\x00-\x1f]*+")([ \t\n\r]*+:[ \t\n\r]*+)')
_SCALAR = re.compile(r"[\w.+-]*+")
_PARTIAL_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?")
_ILLEGAL = re.compile(r"[\x00-\x1f]|\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4}|(.))", re.DOTALL)

Step = Callable[["Corrector", str, int], int]


class Draft:
    """The member being read, in pieces as they came."""

    __slots__ = ("key", "lead", "mid", "name", "passing", "tail", "value")

    def __init__(self, lead: list[str]) -> None:
        self.lead = lead
        self.key = ['"']
        self.mid: list[str] = []
        self.value: list[str] = []
        self.tail: list[str] = []
        self.name = ""
        self.passing = False  # its value goes out as it comes

    def unsent(self) -> str:
        if self.passing:
            return "".join(self.tail)
        return "".join((*self.lead, *self.key, *self.mid, *self.value, *self.tail))

    def member(self) -> Member:
        return Member("".join(self.lead), "".join(self.key), "".join(self.mid), self.name)


class Corrector:
    """Reads the text after an opening brace, fragment by fragment, and writes the corrected object."""

    def __init__(self, call: Call, opening: str) -> None:
        self.closed = False
        self.closed_by_rule = False  # the closing brackets are ours
        self.empty = True  # no member seen yet
        self._passing = False  # inside a string that goes straight to the client
        self._call = call
        self._plan = ObjectPlan(call, opening)
        self._writer = self._plan.writer
        self.out = self._writer.out  # what may go to the client now
        self._step: Step = Corrector._before_key  # not bound: it would hold us for ever
        self._draft: Draft | None = None
        self._gap: list[str] = []  # whitespace before the next key
        self._comma = False  # a comma has been read and no key after it
        self._carry = ""  # the beginning of an escape whose end has not come
        self._damage: list[str] | None = None  # everything from the first damage on
        self._string = StringScanner()
        self._nested = JsonScanner()

    @property
    def damaged(self) -> bool:
        """Whether strict reading has ended before the object did."""
        return self._damage is not None

    def feed(self, text: str, pos: int = 0) -> str:
        """Read `text` from `pos`; gives what follows the object in it, if it ends here."""
        if self._carry:
            text, pos, self._carry = self._carry + text[pos:], 0, ""
        while pos < len(text) and not self.closed:
            pos = self._step(self, text, pos)
        self._passing = self._step is Corrector._pass_string and not self._writer.waiting
        return text[pos:]

    def pass_on(self, fragment: str) -> str | None:
        """What goes out of a fragment that lies inside a string that passes; None for any other fragment.

        Nearly all fragments are of this kind. An escape that is cut at the end waits for the next one.
        """
        if not self._passing:
            return None
        text = self._carry + fragment
        found = LEGAL_RUN.match(text)
        end = found.end() if found else 0
        if end == len(text):
            self._carry = ""
            return text
        if not _PARTIAL_ESCAPE.fullmatch(text, end):
            return None
        self._carry = text[end:]
        return text[:end]

    def seal(self) -> None:
        """Write the end of an object that turned out to be really empty."""
        self._plan.close("".join((*self._gap, "}")))

    def finish(self, ended: bool) -> tuple[bool, str]:
        """The text is over; gives whether the object is complete, and what follows it.

        `ended`: the upstream itself said that the call is finished, so brackets that are merely missing
        may be added.
        """
        rest = self._mend_damage() if self._damage is not None else ""
        if ended and not self.closed and self._damage is None:
            self._close_brackets()
        return self.closed, rest

    # Between members.

    def _before_key(self, text: str, pos: int) -> int:
        end = _skip(text, pos)
        self._gap.append(text[pos:end])
        if end == len(text):
            return end
        if text[end] == '"' and self._write_draft():
            self._draft = Draft(self._gap)
            self._gap, self._comma = [], False
            return self._begin_key(text, end)
        if text[end] == "}":
            return self._end_object(text, end)
        return self._break(text, end)

    def _begin_key(self, text: str, pos: int) -> int:
        head = _PLAIN_HEAD.match(text, pos)
        if head and head.end() < len(text):  # the usual case: key and colon came in one piece
            self._now.key = [head.group(1)]
            self._now.mid = [head.group(2)]
            self._now.name = head.group(1)[1:-1]
            return self._begin_value(text, head.end())
        self._step = Corrector._in_key
        return pos + 1

    def _in_key(self, text: str, pos: int) -> int:
        quote = self._string.scan(text, pos)
        end = len(text) if quote < 0 else quote + 1
        self._now.key.append(text[pos:end])
        if quote >= 0:
            self._step = Corrector._before_colon
        return end

    def _before_colon(self, text: str, pos: int) -> int:
        end = _skip(text, pos)
        self._now.mid.append(text[pos:end])
        if end == len(text):
            return end
        if text[end] != ":":
            return self._break(text, end)
        self._now.mid.append(":")
        self._step = Corrector._before_value
        return end + 1

    def _before_value(self, text: str, pos: int) -> int:
        end = _skip(text, pos)
        self._now.mid.append(text[pos:end])
        if end == len(text):
            return end
        try:
            self._now.name = str(parse_exact("".join(self._now.key)))
        except NotJson:
            return self._break(text, end)
        return self._begin_value(text, end)

    def _begin_value(self, text: str, pos: int) -> int:
        char, draft = text[pos], self._now
        self.empty = False
        may_pass = self._plan.streams(draft.name)
        if char == '"' and may_pass:
            draft.passing = True
            self._writer.begin(draft.member())
            self._writer.write('"')
            self._step = Corrector._pass_string
            return pos + 1
        if char == '"':
            draft.value.append('"')
            self._step = Corrector._hold_string
            return pos + 1
        if char in "{[":
            self._nested = JsonScanner()
            self._step = Corrector._hold_nested
            return pos
        self._step = Corrector._hold_scalar
        return pos if _SCALAR.fullmatch(char) else self._break(text, pos)

    # Values.

    def _pass_string(self, text: str, pos: int) -> int:
        found = LEGAL_RUN.match(text, pos)
        end = found.end() if found else pos
        if end > pos:
            self._writer.write(text[pos:end])
        if end == len(text):
            return end
        char = text[end]
        if char == '"':
            return self._value_over('"', end + 1)
        if char == "\\" and _PARTIAL_ESCAPE.fullmatch(text, end):
            self._carry = text[end:]
            return len(text)
        return self._mend_in_passing(text, end)

    def _mend_in_passing(self, text: str, pos: int) -> int:
        before = text[pos : pos + 2] if text[pos] == "\\" else text[pos]
        after = self._legal(before)
        if after is None:
            return self._break(text, pos)
        self._writer.write(after)
        return pos + len(before)

    def _hold_string(self, text: str, pos: int) -> int:
        quote = self._string.scan(text, pos)
        end = len(text) if quote < 0 else quote + 1
        self._now.value.append(text[pos:end])
        return self._value_over("", end) if quote >= 0 else end

    def _hold_nested(self, text: str, pos: int) -> int:
        end = self._nested.scan(text, pos)
        self._now.value.append(text[pos:end])
        if self._nested.state == "broken":
            return self._break(text, end)
        return self._value_over("", end) if self._nested.state == "complete" else end

    def _hold_scalar(self, text: str, pos: int) -> int:
        found = _SCALAR.match(text, pos)
        end = found.end() if found else pos
        self._now.value.append(text[pos:end])
        return self._value_over("", end) if end < len(text) else end

    def _value_over(self, closing: str, pos: int) -> int:
        # Nothing is certain yet: only what follows shows whether a quote really closed the string.
        self._now.tail.append(closing)
        self._step = Corrector._after_value
        return pos

    def _after_value(self, text: str, pos: int) -> int:
        end = _skip(text, pos)
        self._now.tail.append(text[pos:end])
        if end == len(text):
            return end
        if text[end] == ",":
            self._comma = True
            self._step = Corrector._before_key
            return end + 1
        return self._end_object(text, end) if text[end] == "}" else self._break(text, end)

    # The end of a member, and of the object.

    def _write_draft(self) -> bool:
        """Write the member that was read last; False when it turns out not to be JSON."""
        draft = self._draft
        if draft is None:
            return True
        if draft.passing:
            self._writer.end("".join(draft.tail))
            return True
        strict = self._strict("".join(draft.value))
        if strict is None:
            return False
        member = draft.member()
        member.tail = "".join(draft.tail)
        self._plan.hold(member, *strict)
        return True

    def _end_object(self, text: str, pos: int) -> int:
        surplus = comma_is_wrong(int(self._comma), wanted=0)
        if (surplus and not self._call.rules.on("commas")) or not self._write_draft():
            return self._break(text, pos)
        if surplus:
            self._call.book.add("commas", "", ",}", "}")
        self.closed = True
        if not self.empty:
            self.seal()
        return pos + 1

    def _close_brackets(self) -> None:
        """Close what is merely open: never inside a string, never where something was still to come."""
        if self._step not in (Corrector._hold_nested, Corrector._hold_scalar, Corrector._after_value):
            return
        nested = self._step is Corrector._hold_nested
        closers = self._nested.closers() if nested else ""
        closing = closing_text("".join(self._now.value), closers)
        if closing is None or not self._call.rules.on("missing-closing-brackets"):
            return
        self.feed(closing)
        self.closed_by_rule = self.closed
        if self.closed:
            self._call.book.add("missing-closing-brackets", "", "", closing)

    # Damage.

    @property
    def _now(self) -> Draft:
        if self._draft is None:
            self._draft = Draft([])
        return self._draft

    def _break(self, text: str, pos: int) -> int:
        """Strict reading ends here: hold everything that is not sent yet, and all that follows."""
        unsent = self._draft.unsent() if self._draft else ""
        gap = "".join(self._gap)
        self._damage = [unsent, "," if self._comma else "", gap, text[pos:]]
        self._step = Corrector._hold_damage
        return len(text)

    def _hold_damage(self, text: str, pos: int) -> int:
        assert self._damage is not None
        self._damage.append(text[pos:])
        return len(text)

    def _mend_damage(self) -> str:
        """Have the remainder rewritten as strict JSON and read that; gives what follows the object."""
        text = "".join(self._damage or ())
        reader = LooseReader(text, self._call.rules.on)
        in_string = self._draft is not None and self._draft.passing
        try:
            # Outside a string, the text begins with a member whose comma was read.
            end = reader.members(reader.rest_of_string(0) if in_string else 0, first=not in_string)
        except Unreadable:
            return ""
        for rule, around in reader.used.items():
            self._call.book.add(rule, "", around, "")
        self._damage, self._comma, self._gap = None, False, []
        if in_string:
            self._now.tail = []
            self._step = Corrector._pass_string
        else:
            self._draft = None
            self._step = Corrector._before_key
        self.feed("".join(reader.out))
        return text[end:]

    def _strict(self, text: str) -> tuple[str, Any] | None:
        """A held value as strict JSON text and what it says; None when it cannot be read."""
        if text.startswith('"'):
            text = self._legal_string(text)
        elif text[:1] not in "{[" and not is_json_scalar(text):
            mended = mend_word(text) if self._call.rules.on("words") else None
            if mended is not None:
                self._call.book.add("words", f"/{self._now.name}", text, mended)
            text = mended or ""
        try:
            return text, parse_exact(text)
        except NotJson:
            return self._loose(text)

    def _loose(self, text: str) -> tuple[str, Any] | None:
        reader = read_value(text, self._call.rules.on) if text[:1] in ("{", "[") else None
        if reader is None:
            return None
        strict = "".join(reader.out)
        try:
            value = parse_exact(strict)
        except NotJson:
            return None
        for rule, around in reader.used.items():
            self._call.book.add(rule, f"/{self._now.name}", around, "")
        return strict, value

    def _legal_string(self, text: str) -> str:
        def mend(found: re.Match[str]) -> str:
            piece = found.group()
            if piece[0] == "\\" and found.group(1) is None:
                return piece
            return self._legal(piece) or piece

        return f'"{_ILLEGAL.sub(mend, text[1:-1])}"'

    def _legal(self, piece: str) -> str | None:
        """A raw control character or an illegal escape, mended; None if that rule is off."""
        rule = "illegal-escapes" if piece[0] == "\\" else "control-characters"
        if not self._call.rules.on(rule):
            return None
        after = mend_escape(piece[1]) if piece[0] == "\\" else escape_control(piece)
        self._call.note_once(rule, f"/{self._now.name}", piece, after)
        return after


def _skip(text: str, pos: int) -> int:
    found = WHITESPACE.match(text, pos)
    return found.end() if found else pos
