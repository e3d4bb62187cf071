"""Recovers tool calls that a model wrote as text, while the text streams.

Only calls of declared tools are recovered, and never from code, quotations or mentions. All other text
passes unchanged, and is held only while a mark may begin. `formats.py` has the table of formats.

Calls leak if a server has no tool parser for the model, or if the parser gives up: at an unusual blank, a cut
token, a call in the reasoning. The agent then shows markup to the user, and the turn ends without a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, cast

import msgspec

from ...wire.jsonscan import match_end
from .block import BlockOutcome, MarkupBlock
from .catalog import Catalog
from .code_spans import CodeMarks, OpaqueSpan, UndeclaredMarkup
from .end_tokens import END_PREFIXES, NOTHING, EndTokens
from .heads import LeakFormat
from .marks import (
    AFTER_CALL,
    ANSWER,
    ANYWHERE,
    LINE_FORMATS,
    LINE_PREFIXES,
    LINE_START,
    LONGEST,
    TAG,
    TAG_START,
    TAGGED,
    OpeningMarks,
    is_mark,
)
from .mention import QUOTES

_TICK, _TILDES = "`", "~~~"
# The first characters of marks and code. In a line that began with words, only these need a closer look.
_STARTS = re.compile(r"[<\[\]]")
_TRIGGER = re.compile(r"[<\[\]`\n]")
_BLANK = re.compile(r"\s*")
_LINE_MEMORY = 200
# Each step looks at the whole rest of a piece: short pieces keep the cost linear if a text has many marks.
_PIECE = 1024
_MAX_GAP = 1024


class LeakedCall(msgspec.Struct, frozen=True):
    """A call recovered from text.

    `arguments` is the JSON text of an object, or the text that the model wrote if it is not valid JSON.
    `markup` is the name of the format. `raw` is the text in the answer: if several calls share one block,
    the first one has it.
    """

    name: str
    arguments: str
    markup: str
    raw: str


class FrameTokens(msgspec.Struct, frozen=True):
    """Tokens that began a message of text, and were removed."""

    raw: str


Segment = str | LeakedCall | FrameTokens


class LeakFilter:
    """Takes text and returns text, recovered calls and frame tokens, in order, for every chunking the same.

    `tools` maps each declared tool to its JSON schema, which has the types of parameters that markup writes
    as plain text. Without tools, nothing is recovered. `dropped` collects removed text that is no call: end
    tokens, and blanks after the last call. `framed` collects tokens that began a message of text.
    """

    __slots__ = (
        "_block",
        "_ends",
        "_expected",
        "_gap",
        "_held",
        "_inside",
        "_line",
        "_out",
        "_recovering",
        "_span",
        "_tools",
        "dropped",
        "framed",
        "idle",
        "line_end",
    )

    def __init__(self, tools: Catalog | Mapping[str, Mapping[str, Any] | None]) -> None:
        self._tools = tools if isinstance(tools, Catalog) else Catalog(tools)
        self._recovering = recovering = bool(tools)
        self._ends = EndTokens()
        self._out: list[Segment] = []
        self._held = ""  # text that may begin a mark
        self._block: MarkupBlock | None = None
        self._gap = ""  # the blanks before that block, if no text came before them
        self._span: OpaqueSpan | None = None
        self._line = ""  # the current line, or its beginning
        self._inside = False  # a message of text was begun by tokens, and no call followed
        # Marks that count while there is no text since the start or the last call. None after text.
        self._expected = ANSWER if recovering else None
        self.dropped = ""
        self.framed = ""
        self.idle = False
        """Nothing is held or open, so text without a trigger may skip the filter."""
        self.line_end = ""
        """The end of the current line. A caller that skips the filter must put its text here."""

    @property
    def holding(self) -> bool:
        return bool(self._held or self._block or self._ends.holding)

    def feed(self, text: str) -> list[Segment]:
        if self.idle and is_untriggered(text):
            self.line_end = text
            return [text]
        self._run(text, last=False)
        return self._taken()

    def close(self) -> list[Segment]:
        """The answer is over: return the held text, as calls or as text."""
        self._run("", last=True)
        text, dropped = self._ends.close()
        self.dropped += dropped
        if text:
            self._out.append(text)
        return self._taken()

    def take_mark(self) -> str:
        """Remove and return an opening mark at the very end of the text. Call it before `close`.

        A server with a tool parser may leave the mark, or its beginning, in the text. A tag of plain letters
        counts only if it is alone on its line: after words it may be part of the sentence.
        """
        mark = self._block.text if self._block else self._held
        if self._span is not None or not is_mark(mark) or not self._stands_apart(mark.strip()):
            return ""
        mark = self._gap + mark
        self._block, self._held, self._gap, self._expected = None, "", "", None
        self._out.append(self._ends.flush())
        self._extend_line(mark)
        return mark

    def _stands_apart(self, mark: str) -> bool:
        return not mark[1].isalpha() or not (self._line.strip() or _is_quotation(self._line))

    def _taken(self) -> list[Segment]:
        out, self._out = self._out, []
        busy = self.holding or self._span or self._expected or not self._line.strip()
        self.idle = not busy
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
                self._emit_text(buffer)
                return
            if self._block is not None:
                buffer = self._in_block(self._block, buffer, last)
            elif self._span is not None:
                buffer = self._in_span(self._span, buffer, last)
            elif self._expected is not None:
                buffer = self._before_text(self._expected, buffer, last)
            else:
                buffer = self._in_text(buffer, last)

    def _before_text(self, marks: OpeningMarks, buffer: str, last: bool) -> str:
        """At the start, or after a call: blanks belong to the next call, if one follows."""
        blank = _BLANK if marks is ANSWER else NOTHING
        at = match_end(blank, buffer, 0)
        rest = buffer[at:]
        if at > _MAX_GAP:  # models in a loop write blanks without end
            self._expected = None
            return buffer
        begun = rest in marks.prefixes or rest in END_PREFIXES or self._may_be_tag(rest)
        if not last and (not rest or begun):
            self._held = buffer
            return ""
        if not rest and marks is not ANSWER:
            self.dropped += buffer
            return ""
        self._gap = buffer[:at]
        mark, tag = marks.pattern.match(rest), TAG.match(rest)
        if mark is not None:
            self._open(marks.table[mark.group()], mark.group())
        elif tag is not None and tag[1] in self._tools:
            self._open(TAGGED, tag.group())
        else:
            self._gap, self._expected = "", None
            return buffer
        return rest

    def _may_be_tag(self, text: str) -> bool:
        return bool(TAG_START.fullmatch(text)) and self._tools.has_prefix(text[1:])

    def _in_text(self, buffer: str, last: bool) -> str:
        first = _TRIGGER.search(buffer)
        mark = ANYWHERE.pattern.search(buffer, first.start()) if first else None
        line = self._line_mark(buffer)
        if line and not (mark and mark.start() <= line.start(2)):
            return self._at_line_start(buffer, line)
        if mark is None:
            keep = len(buffer) if last else self._safe_length(buffer)
            self._emit_text(buffer[:keep])
            self._held = buffer[keep:]
            return ""
        self._emit_text(buffer[: mark.start()])
        if mark.group()[0] == _TICK:
            return self._open_code(buffer, mark.start())
        return self._at_mark(mark.group(), buffer[mark.start() :])

    def _line_mark(self, buffer: str) -> re.Match[str] | None:
        """The first mark at the beginning of a line that may open a call or code."""
        begun = bool(self._line.strip())
        if begun and "\n" not in buffer:
            return None
        for found in LINE_START.finditer(buffer):
            indent = found[1] if found.start() else self._line + found[1]
            if indent.strip():
                continue  # not the beginning of a line
            if found[2].startswith(_TILDES):
                return found
            if (found[3] is None or found[3] in self._tools) and not _is_quotation(indent):
                return found
        return None

    def _at_line_start(self, buffer: str, line: re.Match[str]) -> str:
        self._emit_text(buffer[: line.start(2)])
        if line[2].startswith(_TILDES):
            return self._open_code(buffer, line.start(2))
        self._open(TAGGED if line[3] else LINE_FORMATS[line[2]], line[2])
        return buffer[line.start(2) :]

    def _open_code(self, buffer: str, start: int) -> str:
        """Backticks or tildes: code begins."""
        self._span = CodeMarks(buffer[start])
        return buffer[start:]

    def _at_mark(self, mark: str, buffer: str) -> str:
        # Special tokens are also marks in indented lines and in sentences. Tags of plain letters may be code
        # there, or part of the sentence.
        plain = mark[1].isalpha()
        if self._line.lstrip().startswith(">") or (plain and _is_quotation(self._line)):
            self._emit_text(mark)
            return buffer[len(mark) :]
        before = _ending("", self.line_end)
        inline = bool(self._line.strip()) if plain else before in QUOTES
        self._open(ANYWHERE.table[mark], mark, before=before if inline else "")
        return buffer

    def _open(self, formats: tuple[LeakFormat, ...], mark: str, *, before: str = "") -> None:
        self._block = MarkupBlock(formats, mark, self._tools, before=before, inside=self._inside)

    def _safe_length(self, buffer: str) -> int:
        """The length of the text before anything that may begin a mark."""
        end = len(buffer)
        for start in _STARTS.finditer(buffer, max(0, end - LONGEST)):
            if buffer[start.start() :] in ANYWHERE.prefixes:
                end = start.start()
                break
        line = buffer.rfind("\n") + 1
        if line or not self._line.strip():
            words = buffer[line:].lstrip(" \t")
            if words in LINE_PREFIXES or self._may_be_tag(words):
                end = min(end, len(buffer) - len(words))
        return end

    def _in_span(self, span: OpaqueSpan, buffer: str, last: bool) -> str:
        end, after = span.read(buffer, last=last)
        self._emit_text(buffer[:end])
        self._span = after
        if after is span:
            self._held = buffer[end:]
            return ""
        return buffer[end:]

    def _in_block(self, block: MarkupBlock, buffer: str, last: bool) -> str:
        outcome = block.push(buffer, last=last)
        if outcome is None:
            return ""
        gap, self._gap = self._gap, ""
        self._block = None
        raw = gap + block.text[: outcome.length]
        if outcome.calls:
            self._emit_calls(outcome, raw)
        elif outcome.frame:
            self._out += [self._ends.flush(), FrameTokens(raw)]
            self.framed += raw.strip()
            self._inside = True
            self._line = self.line_end = ""
        else:
            self._expected = None
            self._emit_text(raw)
            self._span = UndeclaredMarkup(outcome.skip) if outcome.skip else None
            self._recovering = not outcome.overflow
        return block.text[outcome.length :]

    def _emit_calls(self, outcome: BlockOutcome, raw: str) -> None:
        self._out.append(self._ends.flush())
        for name, arguments in outcome.calls:
            self._out.append(LeakedCall(name, arguments, outcome.markup, raw))
            raw = ""
        self._expected, self._line, self.line_end, self._inside = AFTER_CALL, "", "", False

    def _emit_text(self, text: str) -> None:
        if not text:
            return
        self._extend_line(text)
        self._out.append(self._ends.feed(text))

    def _extend_line(self, text: str) -> None:
        newline = text.rfind("\n")
        line = text[newline + 1 :] if newline >= 0 else self._line + text
        self._line = line[:_LINE_MEMORY]
        self.line_end = _ending("" if newline >= 0 else self.line_end, text[newline + 1 :])


def is_untriggered(text: str) -> bool:
    """Whether the text has no character that needs a closer look. `in` is much faster than a pattern."""
    if "\n" in text or "<" in text or "`" in text or "[" in text or "]" in text:
        return False
    return text != "" and not text.isspace()


def _ending(line: str, text: str) -> str:
    """The end of a line after `text` is added: its last character, and a blank if blanks follow."""
    words = text.rstrip() or line.rstrip()
    blank = " " if text[-1:].isspace() or (not text and line[-1:].isspace()) else ""
    return words[-1:] + blank if words else ""


def _is_quotation(line: str) -> bool:
    """Whether a line that begins like this is a quotation (`> …`) or code (indented by four)."""
    indent = line[: len(line) - len(line.lstrip())]
    if line.lstrip().startswith(">"):
        return True
    return line.isspace() and ("\t" in indent or len(indent) >= 4)


def _merged(segments: list[Segment]) -> list[Segment]:
    """The segments, with adjacent text joined."""
    merged: list[Segment] = []
    for is_text, group in groupby(segments, lambda segment: isinstance(segment, str)):
        if not is_text:
            merged += group
        elif text := "".join(cast("Iterator[str]", group)):
            merged.append(text)
    return merged
