"""The arguments of one tool call, from fragments to corrected text: `live` as it comes, or `whole`.

Both are one machine. `live` gives out what is certain after each fragment; `whole` gives out all of it at
the end. What comes out depends on the characters alone, never on how they were cut into fragments. So for
every input and every chunking both give the same text, or both say that the call is broken.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Literal, cast

import msgspec

from ..json_text import NotJson, parse_plain
from ..rules import Fix, Rules
from ..rules.syntax import is_trailing
from ..schema import ToolSchema
from .corrector import Corrector
from .members import Call, Inner
from .shape import candidates

Mode = Literal["live", "whole"]

_BLANK = re.compile(r"[ \t\r\n]*+")
_FENCE = re.compile(r"`{1,3}(?:(?<=```)[\w-]{0,20}\s*+)?")
# Strings in wrappers in lists: no server nests deeper by accident, and each level is one more pass.
_DEEPEST = 16


class Outcome(msgspec.Struct, frozen=True):
    """What became of the arguments of one call."""

    text: str  # everything given by feed() + rest
    rest: str  # what still has to be sent
    value: dict[str, Any] | None  # the parsed object, None when broken
    complete: bool  # False: cut off or unreadable; never to be given out as finished
    problems: tuple[str, ...]  # what does not fit the schema, or why it is broken
    fixes: tuple[Fix, ...]


class LiveArguments:
    """Gives out the corrected text as it becomes certain."""

    live = True

    __slots__ = (
        "_after",
        "_call",
        "_corrector",
        "_final",
        "_held",
        "_lead",
        "_sent",
    )

    def __init__(self, name: str, schema: ToolSchema, rules: Rules, *, depth: int = 0) -> None:
        # Not a method of ours: the call would hold us, and only the collector could free the two.
        self._call = Call(name, schema, rules, partial(_correct_inner, name, schema, rules, depth + 1))
        self._sent: list[str] = []
        self._lead: list[str] = []  # before the object: whitespace, or the beginning of a fence
        self._held: list[str] | None = None  # all of a text that does not begin like an object
        self._corrector: Corrector | None = None
        self._after: list[str] = []  # what follows the object
        self._final = False  # the object has been told from a mere placeholder

    @property
    def whole(self) -> bool:
        """Has an object that says something been read to its end, and nothing about it was odd?"""
        corrector = self._corrector
        if corrector is None or not corrector.closed or corrector.empty:
            return False
        return not self._call.book.count

    def feed(self, fragment: str) -> str:
        """Take the next fragment; gives the text that may go to the client now."""
        corrector = self._corrector
        if corrector is None:
            self._begin(fragment)
        elif (text := corrector.pass_on(fragment)) is not None:
            if text:
                self._sent.append(text)
            return text
        elif corrector.closed:
            self._go_on(corrector, fragment)
        else:
            self._read(corrector, fragment, 0)
        return self._flush()

    def finish(self, *, ended: bool | None = None) -> Outcome:
        """The call is over, or the stream is: decide by the JSON whether it is complete.

        `ended` is what the upstream said of the end. True: the call is finished (a stop reason for tool
        use, the end of the block); only then may missing closing brackets be added, and only when the
        arguments fit their schema with them. False: it was cut; then no text at all is no arguments
        received, not a call without arguments.
        """
        before = sum(map(len, self._sent))
        cut_at_start = ended is False and not "".join(self._lead).strip()
        complete = not cut_at_start and self._finish_text(ended is True)
        self._flush()
        text = "".join(self._sent)
        value = _object(text) if complete else None
        if value is None:
            return self._broken(text[:before])
        problems = self._call.schema.validate(value)
        if problems and self._corrector is not None and self._corrector.closed_by_rule:
            return self._broken(text[:before])
        fixes = tuple(self._call.book.fixes)
        return Outcome(text, text[before:], value, True, tuple(map(str, problems)), fixes)

    def _broken(self, sent: str) -> Outcome:
        if self._corrector is None:
            problem = "the arguments are not a JSON object"
        elif self._corrector.damaged:
            problem = "the arguments are not JSON and cannot be mended"
        else:
            problem = "the arguments were cut off"
        return Outcome(sent, "", None, False, (problem,), tuple(self._call.book.fixes))

    def _flush(self) -> str:
        corrector = self._corrector
        if corrector is None or not corrector.out:
            return ""
        text = "".join(corrector.out)
        corrector.out.clear()
        self._sent.append(text)
        return text

    # Before the object.

    def _begin(self, fragment: str) -> None:
        if self._held is not None:
            self._held.append(fragment)
            return
        self._lead.append(fragment)
        if not fragment.strip():
            return  # decides nothing, and is not worth looking at again with each fragment
        lead = "".join(self._lead)
        start = _end(_BLANK, lead, 0)
        fence = _end(_FENCE, lead, start)
        if fence == len(lead):
            return  # blank, or a fence that may go on
        fenced = fence > start
        if lead[fence] == "{" and (not fenced or self._call.rules.on("code-fence")):
            self._open(lead, fence, fenced)
        else:
            self._held = [lead]

    def _open(self, text: str, brace: int, fenced: bool) -> None:
        if fenced:
            self._call.book.add("code-fence", "", text[: brace + 1], "{")
        opening = "{" if fenced else text[: brace + 1]
        self._corrector = Corrector(self._call, opening)
        self._read(self._corrector, text, brace + 1)

    def _read(self, corrector: Corrector, text: str, pos: int) -> None:
        rest = corrector.feed(text, pos)
        if corrector.closed and rest:
            self._go_on(corrector, rest)

    # After the object.

    def _go_on(self, corrector: Corrector, text: str) -> None:
        """Text after a closed object; after an empty one the real object may still come."""
        self._after.append(text)
        if self._final or not corrector.empty or not text.strip():
            return
        after = "".join(self._after)
        start = _end(_BLANK, after, 0)
        self._final = after[start] != "{" or not self._call.rules.on("empty-prefix")
        if not self._final:
            self._call.book.add("empty-prefix", "", "{}", "")
            self._after = []
            self._corrector = Corrector(self._call, "{")
            self._read(self._corrector, after, start + 1)

    def _finish_text(self, ended: bool) -> bool:
        if self._corrector is None:
            return self._finish_held("".join(self._held or self._lead))
        return self._finish_object(self._corrector, ended)

    def _finish_object(self, corrector: Corrector, ended: bool) -> bool:
        closed, rest = corrector.finish(ended)
        if not closed:
            return False
        if corrector.empty:
            corrector.seal()
        after = "".join((*self._after, rest))
        if is_trailing(after):
            if not self._call.rules.on("trailing-text"):
                return False
            self._call.book.add("trailing-text", "", after.strip(), "")
        elif after:
            corrector.out.append(after)
        return True

    # A text that is no object.

    def _finish_held(self, text: str) -> bool:
        best: tuple[str, str, Inner] | None = None
        for rule, inner in candidates(text, self._call):
            found = self._call.inner(inner) if self._call.rules.on(rule) else None
            if found is None:
                continue
            if best is None or self._call.schema.fits(found[1]):
                best = (rule, inner, found)
            if self._call.schema.fits(found[1]):
                break
        if best is None:
            return False
        rule, inner, (corrected, _, fixes) = best
        self._call.book.add(rule, "", text, inner)
        self._call.book.extend(fixes)
        self._sent.append(corrected)
        return True


def _correct_inner(name: str, schema: ToolSchema, rules: Rules, depth: int, text: str) -> Inner | None:
    """Correct a text found inside the arguments as if it were the arguments."""
    if depth > _DEEPEST:
        return None
    inner = LiveArguments(name, schema, rules, depth=depth)
    inner.feed(text)
    outcome = inner.finish()
    if outcome.value is None:
        return None
    return outcome.text, outcome.value, list(outcome.fixes)


class WholeArguments:
    """Gives out the corrected text at the end, in one piece."""

    live = False
    whole = False  # nothing is read before the end

    __slots__ = ("_inner",)

    def __init__(self, name: str, schema: ToolSchema, rules: Rules) -> None:
        self._inner = LiveArguments(name, schema, rules)

    def feed(self, fragment: str) -> str:
        """Take the next fragment; nothing goes to the client yet."""
        self._inner.feed(fragment)
        return ""

    def finish(self, *, ended: bool | None = None) -> Outcome:
        """The call is over: the corrected text is the outcome's `rest`."""
        outcome = self._inner.finish(ended=ended)
        if not outcome.complete:
            return msgspec.structs.replace(outcome, text="", rest="")
        return msgspec.structs.replace(outcome, rest=outcome.text)


def assemble(mode: Mode, name: str, schema: ToolSchema, rules: Rules) -> LiveArguments | WholeArguments:
    """The assembly of one call's arguments, as the client's profile wants it."""
    return (LiveArguments if mode == "live" else WholeArguments)(name, schema, rules)


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = parse_plain(text)
    except NotJson:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _end(run: re.Pattern[str], text: str, pos: int) -> int:
    found = run.match(text, pos)
    return found.end() if found else pos
