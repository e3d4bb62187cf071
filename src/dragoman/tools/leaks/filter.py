"""Tool calls that a model wrote as text, recovered from the text while it streams.

Only calls of declared tools are recovered, and never from code, quotations or mentions; all other
text passes as it is, held back only as far as a mark could still begin. The formats are a table in
`formats`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, cast

import msgspec

from .block import Block, Outcome
from .catalog import Catalog
from .code import Passage, Run, Shown
from .ends import END_PREFIXES, END_TOKENS, NOTHING, EndTokens
from .formats import FORMATS
from .heads import Format


class LeakedCall(msgspec.Struct, frozen=True):
    """A call recovered from text.

    `arguments` is the JSON text of an object, or the raw text where the model wrote no valid JSON;
    `raw` is what stood in the answer. Of calls that share one block, the first carries its text.
    """

    name: str
    arguments: str
    markup: str
    raw: str


class Frame(msgspec.Struct, frozen=True):
    """Tokens that began a message of words, taken out."""

    raw: str


Segment = str | LeakedCall | Frame


class _Marks:
    """Opening marks: where one stands, what it may open, and what may still become one."""

    def __init__(self, formats: Iterable[Format], before: str = "", after: str = "") -> None:
        table: dict[str, list[Format]] = {}
        for candidate in formats:
            for mark in dict.fromkeys(mark for head in candidate.heads for mark in head.marks):
                table.setdefault(mark, []).append(candidate)
        # Where one mark begins another, what the longer may open is open to the shorter too.
        self.table = {
            mark: tuple(
                dict.fromkeys(
                    candidate
                    for other, found in table.items()
                    if other.startswith(mark)
                    for candidate in found
                )
            )
            for mark in table
        }
        marks = "|".join(map(re.escape, sorted(table, key=len, reverse=True)))
        self.pattern = re.compile(f"{before}(?:{marks}){after}")
        self.prefixes = frozenset(mark[:size] for mark in table for size in range(1, len(mark)))


def _placed(*places: str) -> list[Format]:
    return [candidate for candidate in FORMATS if candidate.place in places]


_ANYWHERE = _Marks(_placed("anywhere"), after="|`+")
_LINE = _Marks(_placed("line"))
_AFTER_CALL = _Marks(_placed("anywhere", "line", "message", "call"))
_ANSWER = _Marks(_placed("anywhere", "line", "message", "answer"))
_TAGGED = tuple(_placed("tag"))

_TICK, _TILDES = "`", "~~~"
# How marks and code begin. In a line that has begun with words, only these need a closer look.
_STARTS = re.compile(r"[<\[\]]")
_TRIGGER = re.compile(r"[<\[\]`\n]")
_LONGEST = max(map(len, _ANYWHERE.table))
_TAG = re.compile(r"<([A-Za-z_][\w-]*)>")
_TAG_START = re.compile(r"<[A-Za-z_][\w-]*")
_LINE_START = re.compile(rf"^([ \t]*)(~{{3,}}|{_LINE.pattern.pattern}|{_TAG.pattern})", re.MULTILINE)
_LINE_PREFIXES = _LINE.prefixes | {"~", "~~"}
_BLANK = re.compile(r"\s*")
_LINE_MEMORY = 200
# Each step looks at all that is left of a piece, so pieces are short: else many marks in one long text
# would cost their number times its length.
_PIECE = 1024
_MAX_GAP = 1024
# Marks that are nothing but marks: some of the others end a turn as well.
_ONLY = [mark for mark in _ANYWHERE.table if mark not in END_TOKENS]
_OPENINGS = re.compile(rf"(?:\s*(?:{'|'.join(map(re.escape, _ONLY))}))*\s*")
# Enough of an opening mark to be nothing else.
_NEARLY = frozenset(mark[:size] for mark in _ONLY for size in range(5, len(mark)))


class LeakFilter:
    """Text in; text, recovered calls and frames out, in order. The result does not depend on the chunking.

    `tools` maps each declared tool to its JSON schema, which gives the types of parameters that
    markup writes as plain text. Without tools nothing is recovered. `dropped` collects what was
    taken out without being a call: end tokens, and blanks after the last call. `framed` collects the
    tokens that began a message of words.
    """

    __slots__ = (
        "_block",
        "_ends",
        "_fresh",
        "_gap",
        "_held",
        "_out",
        "_passage",
        "_recovering",
        "_said",
        "_tools",
        "dropped",
        "framed",
        "idle",
        "spoke",
    )

    def __init__(self, tools: Catalog | Mapping[str, Mapping[str, Any] | None]) -> None:
        self._tools = tools if isinstance(tools, Catalog) else Catalog(tools)
        self._recovering = recovering = bool(tools)
        self._ends = EndTokens()
        self._out: list[Segment] = []
        self._held = ""  # text that may begin something
        self._block: Block | None = None
        self._gap = ""  # the blanks before that block, if nothing was said since start or call
        self._passage: Passage | None = None
        self._said = ""  # the current line so far, or its beginning
        self._fresh = _ANSWER if recovering else None  # nothing was said yet, or since the last call
        self.dropped = ""
        self.framed = ""
        self.idle = False
        """Is nothing held or open, so that text without a trigger goes straight through?"""
        self.spoke = ""
        """The end of the current line so far; text that goes straight through is put here by who lets it."""

    @property
    def holding(self) -> bool:
        return bool(self._held or self._block or self._ends.holding)

    def feed(self, text: str) -> list[Segment]:
        if self.idle and is_untriggered(text):
            self.spoke = text
            return [text]
        self._run(text, last=False)
        return self._taken()

    def close(self) -> list[Segment]:
        """At the end of the answer: what is still held, as the calls or the text that it is."""
        self._run("", last=True)
        text, dropped = self._ends.close()
        self.dropped += dropped
        if text:
            self._out.append(text)
        return self._taken()

    def take_mark(self) -> str:
        """Before `close`: the opening mark that the text ends with and nothing follows, taken out.

        A server that reads calls itself may leave it there, or the beginning of it. A tag of plain
        letters counts only where it stands alone on its line: behind words it may be one of them.
        """
        mark = self._block.text if self._block else self._held
        if self._passage is not None or not _is_mark(mark) or not self._stands_apart(mark.strip()):
            return ""
        mark = self._gap + mark
        self._block, self._held, self._gap, self._fresh = None, "", "", None
        self._out.append(self._ends.flush())
        self._add_to_line(mark)
        return mark

    def _stands_apart(self, mark: str) -> bool:
        return not mark[1].isalpha() or not (self._said.strip() or _is_quotation(self._said))

    def _taken(self) -> list[Segment]:
        out, self._out = self._out, []
        looks = self.holding or self._passage or self._fresh or not self._said.strip()
        self.idle = not looks
        return _merged(out)

    def _run(self, text: str, *, last: bool) -> None:
        for start in range(0, len(text), _PIECE):
            self._run_piece(text[start : start + _PIECE], last=False)
        if last:
            self._run_piece("", last=True)

    def _run_piece(self, text: str, *, last: bool) -> None:
        buffer, self._held = self._held + text, ""
        while buffer or (last and self._block):
            if not self._recovering:
                self._say(buffer)
                return
            if self._block is not None:
                buffer = self._in_block(self._block, buffer, last)
            elif self._passage is not None:
                buffer = self._in_passage(self._passage, buffer, last)
            elif self._fresh is not None:
                buffer = self._in_nothing(self._fresh, buffer, last)
            else:
                buffer = self._in_text(buffer, last)

    def _in_nothing(self, marks: _Marks, buffer: str, last: bool) -> str:
        """At the start, or after a call: blanks belong to the call that follows, if one does."""
        blank = _BLANK if marks is _ANSWER else NOTHING
        found = blank.match(buffer)
        at = found.end() if found else 0
        rest = buffer[at:]
        if at > _MAX_GAP:  # models that spin write blanks without end
            self._fresh = None
            return buffer
        begun = rest in marks.prefixes or rest in END_PREFIXES or self._may_be_tag(rest)
        if not last and (not rest or begun):
            self._held = buffer
            return ""
        if not rest and marks is not _ANSWER:
            self.dropped += buffer
            return ""
        self._gap = buffer[:at]
        mark, tag = marks.pattern.match(rest), _TAG.match(rest)
        if mark is not None:
            self._open(marks.table[mark.group()], mark.group())
        elif tag is not None and tag[1] in self._tools:
            self._open(_TAGGED, tag.group())
        else:
            self._gap, self._fresh = "", None
            return buffer
        return rest

    def _may_be_tag(self, text: str) -> bool:
        return bool(_TAG_START.fullmatch(text)) and self._tools.begins(text[1:])

    def _in_text(self, buffer: str, last: bool) -> str:
        first = _TRIGGER.search(buffer)
        mark = _ANYWHERE.pattern.search(buffer, first.start()) if first else None
        line = self._line_mark(buffer)
        if line and not (mark and mark.start() <= line.start(2)):
            return self._at_line_start(buffer, line)
        if mark is None:
            keep = len(buffer) if last else self._certain(buffer)
            self._say(buffer[:keep])
            self._held = buffer[keep:]
            return ""
        self._say(buffer[: mark.start()])
        if mark.group()[0] == _TICK:
            return self._at_run(buffer, mark.start())
        return self._at_mark(mark.group(), buffer[mark.start() :])

    def _line_mark(self, buffer: str) -> re.Match[str] | None:
        """What a line of the buffer begins with and may open something."""
        begun = bool(self._said.strip())
        if begun and "\n" not in buffer:
            return None
        for found in _LINE_START.finditer(buffer):
            indent = found[1] if found.start() else self._said + found[1]
            if indent.strip():
                continue  # this is the middle of a line
            if found[3] is None or (found[3] in self._tools and not _is_quotation(indent)):
                return found
        return None

    def _at_line_start(self, buffer: str, line: re.Match[str]) -> str:
        self._say(buffer[: line.start(2)])
        if line[2].startswith(_TILDES):
            return self._at_run(buffer, line.start(2))
        self._open(_TAGGED if line[3] else _LINE.table[line[2]], line[2])
        return buffer[line.start(2) :]

    def _at_run(self, buffer: str, start: int) -> str:
        """A run of backticks or tildes: code begins."""
        self._passage = Run(buffer[start])
        return buffer[start:]

    def _at_mark(self, mark: str, buffer: str) -> str:
        # The tokens of a model mean what they say anywhere; tags of plain letters may be prose.
        plain = mark[1].isalpha()
        if plain and _is_quotation(self._said):
            self._say(mark)
            return buffer[len(mark) :]
        inline = plain and bool(self._said.strip())
        self._open(_ANYWHERE.table[mark], mark, before=_ending("", self.spoke) if inline else "")
        return buffer

    def _open(self, formats: tuple[Format, ...], mark: str, *, before: str = "") -> None:
        self._block = Block(formats, mark, self._tools, before=before)

    def _certain(self, buffer: str) -> int:
        """How much of the text cannot be the beginning of anything."""
        end = len(buffer)
        for start in _STARTS.finditer(buffer, max(0, end - _LONGEST)):
            if buffer[start.start() :] in _ANYWHERE.prefixes:
                end = start.start()
                break
        line = buffer.rfind("\n") + 1
        if line or not self._said.strip():
            words = buffer[line:].lstrip(" \t")
            if words in _LINE_PREFIXES or self._may_be_tag(words):
                end = min(end, len(buffer) - len(words))
        return end

    def _in_passage(self, passage: Passage, buffer: str, last: bool) -> str:
        end, after = passage.read(buffer, last=last)
        self._say(buffer[:end])
        self._passage = after
        if after is passage:
            self._held = buffer[end:]
            return ""
        return buffer[end:]

    def _in_block(self, block: Block, buffer: str, last: bool) -> str:
        outcome = block.push(buffer, last=last)
        if outcome is None:
            return ""
        gap, self._gap = self._gap, ""
        self._block = None
        raw = gap + block.text[: outcome.length]
        if outcome.calls:
            self._give(outcome, raw)
        elif outcome.frame:
            self._out += [self._ends.flush(), Frame(raw)]
            self.framed += raw.strip()
            self._said = self.spoke = ""
        else:
            self._fresh = None
            self._say(raw)
            self._passage = Shown(outcome.skip) if outcome.skip else None
            self._recovering = not outcome.overflow
        return block.text[outcome.length :]

    def _give(self, outcome: Outcome, raw: str) -> None:
        self._out.append(self._ends.flush())
        for name, arguments in outcome.calls:
            self._out.append(LeakedCall(name, arguments, outcome.markup, raw))
            raw = ""
        self._fresh, self._said, self.spoke = _AFTER_CALL, "", ""

    def _say(self, text: str) -> None:
        if not text:
            return
        self._add_to_line(text)
        self._out.append(self._ends.feed(text))

    def _add_to_line(self, text: str) -> None:
        newline = text.rfind("\n")
        line = text[newline + 1 :] if newline >= 0 else self._said + text
        self._said = line[:_LINE_MEMORY]
        self.spoke = _ending("" if newline >= 0 else self.spoke, text[newline + 1 :])


def is_untriggered(text: str) -> bool:
    """Does nothing in these words need a closer look? A pattern takes much longer to tell."""
    if "\n" in text or "<" in text or "`" in text or "[" in text or "]" in text:
        return False
    return text != "" and not text.isspace()


def _ending(line: str, text: str) -> str:
    """How a line ends that `text` is added to: its last character, and a blank if blanks follow it."""
    words = text.rstrip() or line.rstrip()
    blank = " " if text[-1:].isspace() or (not text and line[-1:].isspace()) else ""
    return words[-1:] + blank if words else ""


def _is_mark(text: str) -> bool:
    """Is it opening marks and nothing else, the last of them perhaps cut?"""
    found = _OPENINGS.match(text)
    rest = text[found.end() :] if found else text
    return rest in _NEARLY or (bool(text.strip()) and not rest)


def _is_quotation(line: str) -> bool:
    """Whether a line that begins so quotes (`> …`) or shows code (indented by four)."""
    indent = line[: len(line) - len(line.lstrip())]
    if line.lstrip().startswith(">"):
        return True
    return line.isspace() and ("\t" in indent or len(indent) >= 4)


def _merged(segments: list[Segment]) -> list[Segment]:
    """Neighbouring pieces of text as one."""
    merged: list[Segment] = []
    for is_text, group in groupby(segments, lambda segment: isinstance(segment, str)):
        if not is_text:
            merged += group
        elif text := "".join(cast("Iterator[str]", group)):
            merged.append(text)
    return merged
