"""Assembles the arguments of one tool call from fragments: `live` while they arrive, or `whole` at the end.

Both are the same machine. `live` emits what is certain after each fragment; `whole` emits everything at the
end. The output depends only on the characters, never on how they were cut into fragments. So both
give the same text for every input and every chunking, or both report that the call is broken.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Literal, cast

import msgspec

from ...wire.jsonscan import match_end
from ..json_text import NotJson, parse_plain
from ..rules import Fix, Rules
from ..rules.syntax import is_trailing
from ..schema import ToolSchema
from .context import CallContext, Inner
from .corrector import Corrector
from .fragments import Fragments
from .held import HeldArguments
from .shape import candidates

Mode = Literal["live", "whole"]

_BLANK = re.compile(r"[ \t\r\n]*+")
_FENCE = re.compile(r"`{1,3}(?:(?<=```)[\w-]{0,20}\s*+)?")
# Strings in wrappers in lists: no server nests deeper by accident, and each level costs one more pass.
_MAX_DEPTH = 16


class Outcome(msgspec.Struct, frozen=True):
    """The result for the arguments of one call."""

    text: str  # all text that `feed` returned, and `rest`
    rest: str  # text that must still be sent
    value: dict[str, Any] | None  # the parsed object; None if the call is broken
    complete: bool  # False: cut or unreadable, so the client must not get it as finished
    problems: tuple[str, ...]  # where the value does not fit the schema, or why the call is broken
    fixes: tuple[Fix, ...]


class LiveArguments:
    """Emits the corrected text as it becomes certain."""

    __slots__ = ("_after", "_call", "_corrector", "_decided", "_not_an_object", "fragments")

    def __init__(self, name: str, schema: ToolSchema, rules: Rules, *, depth: int = 0) -> None:
        # A function, not a method of this object: a method would make a reference cycle.
        inner = partial(_correct_inner, name, schema, rules, depth + 1)
        self._call = CallContext(name, schema, rules, inner)
        self.fragments = Fragments()
        self._corrector: Corrector | None = None  # None until the opening brace is found
        self._not_an_object = False  # the text begins with something else than an object
        self._after: list[str] = []  # text after the object
        self._decided = False  # text after an empty object showed that the object is no placeholder

    @property
    def whole(self) -> bool:
        """Whether an object with members was read to its end, and no rule was needed."""
        corrector = self._corrector
        if corrector is None or not corrector.closed or corrector.empty:
            return False
        return not self._call.fixes.count

    def feed(self, fragment: str) -> str:
        """Take the next fragment. Return the text that may go to the client now."""
        fragments, corrector = self.fragments, self._corrector
        if corrector is None or fragments.unread or (passed := corrector.pass_on(fragment)) is None:
            fragments.hold(fragment)
            return self.release()
        fragments.pieces.append(fragment)
        fragments.passed.append(passed)
        return passed

    def release(self) -> str:
        """Read the fragments that were only held so far. Return the text that may go to the client now."""
        text = self.fragments.take_unread()
        corrector = self._corrector
        if corrector is None:
            self._find_object(text)
        elif corrector.closed:
            self._read_after(corrector, text)
        else:
            self._read(corrector, text, 0)
        return self._flush()

    def finish(self, *, ended: bool | None = None) -> Outcome:
        """The call is over, or the stream is. The JSON decides whether the call is complete.

        `ended` is what the upstream said about the end. True: the call is finished (a stop reason for tool
        use, the end of the block). Only then may missing closing brackets be added, and only if the
        arguments fit their schema with them. False: the call was cut. Then no text means that no arguments
        arrived, not that the call has none.
        """
        before = len(self.fragments.sent)
        if self.fragments.unread:
            self.release()
        # A token limit may cut an answer between the name and the first fragment. An empty object would then
        # run the tool with no arguments.
        cut_at_start = ended is False and self._corrector is None and not self.fragments.received.strip()
        complete = not cut_at_start and self._finish_text(ended is True)
        self._flush()
        # The text that was sent is validated, never the text that arrived.
        text = self.fragments.sent
        value = _object(text) if complete else None
        if value is None:
            return self._broken(text[:before])
        problems = self._call.schema.validate(value)
        # A member may be missing at the end: then the call was cut, and the added brackets only hide it.
        if problems and self._corrector is not None and self._corrector.closed_by_rule:
            return self._broken(text[:before])
        fixes = tuple(self._call.fixes.kept)
        return Outcome(text, text[before:], value, True, tuple(map(str, problems)), fixes)

    def _broken(self, sent: str) -> Outcome:
        if self._corrector is None:
            problem = "the arguments are not a JSON object"
        elif self._corrector.damaged:
            problem = "the arguments are not JSON and cannot be mended"
        else:
            problem = "the arguments were cut off"
        return Outcome(sent, "", None, False, (problem,), tuple(self._call.fixes.kept))

    def _flush(self) -> str:
        corrector = self._corrector
        if corrector is None or not corrector.out:
            return ""
        text = "".join(corrector.out)
        corrector.out.clear()
        self.fragments.passed.append(text)
        return text

    # Before the object.

    def _find_object(self, text: str) -> None:
        # A blank decides nothing. Looking at the whole text again for each blank would cost its square.
        if self._not_an_object or not text.strip():
            return
        lead = self.fragments.received
        start = match_end(_BLANK, lead, 0)
        fence = match_end(_FENCE, lead, start)
        if fence == len(lead):
            return  # only blanks, or a code fence that may go on
        fenced = fence > start
        if lead[fence] == "{" and (not fenced or self._call.rules.on("code-fence")):
            self._open_object(lead, fence, fenced)
        else:
            self._not_an_object = True

    def _open_object(self, text: str, brace: int, fenced: bool) -> None:
        if fenced:
            self._call.fixes.add("code-fence", "", text[: brace + 1], "{")
        opening = "{" if fenced else text[: brace + 1]
        self._corrector = Corrector(self._call, opening)
        self._read(self._corrector, text, brace + 1)

    def _read(self, corrector: Corrector, text: str, pos: int) -> None:
        rest = corrector.feed(text, pos)
        if corrector.closed and rest:
            self._read_after(corrector, rest)

    # After the object.

    def _read_after(self, corrector: Corrector, text: str) -> None:
        """Read text after a closed object. Some servers send an empty placeholder before the real object."""
        self._after.append(text)
        if self._decided or not corrector.empty or not text.strip():
            return
        after = "".join(self._after)
        start = match_end(_BLANK, after, 0)
        self._decided = after[start] != "{" or not self._call.rules.on("empty-prefix")
        if not self._decided:
            self._call.fixes.add("empty-prefix", "", "{}", "")
            self._after = []
            self._corrector = Corrector(self._call, "{")
            self._read(self._corrector, after, start + 1)

    def _finish_text(self, ended: bool) -> bool:
        if self._corrector is None:
            return self._finish_without_object(self.fragments.received)
        return self._finish_object(self._corrector, ended)

    def _finish_object(self, corrector: Corrector, ended: bool) -> bool:
        closed, rest = corrector.finish(ended)
        if not closed:
            return False
        if corrector.empty:
            corrector.write_end()
        after = "".join((*self._after, rest))
        if is_trailing(after):
            if not self._call.rules.on("trailing-text"):
                return False
            self._call.fixes.add("trailing-text", "", after.strip(), "")
        elif after:
            corrector.out.append(after)
        return True

    # A text that does not begin with an object.

    def _finish_without_object(self, text: str) -> bool:
        best: tuple[str, str, Inner] | None = None
        for rule, inner in candidates(text, self._call):
            found = self._call.correct_inner(inner) if self._call.rules.on(rule) else None
            if found is None:
                continue
            if best is None or self._call.schema.fits(found[1]):
                best = (rule, inner, found)
            if self._call.schema.fits(found[1]):
                break
        if best is None:
            return False
        rule, inner, (corrected, _, fixes) = best
        self._call.fixes.add(rule, "", text, inner)
        self._call.fixes.extend(fixes)
        self.fragments.passed.append(corrected)
        return True


def _correct_inner(name: str, schema: ToolSchema, rules: Rules, depth: int, text: str) -> Inner | None:
    """Correct a text inside the arguments as if it were the arguments."""
    if depth > _MAX_DEPTH:
        return None
    inner = LiveArguments(name, schema, rules, depth=depth)
    inner.feed(text)
    outcome = inner.finish()
    if outcome.value is None:
        return None
    return outcome.text, outcome.value, list(outcome.fixes)


class WholeArguments(HeldArguments):
    """Emits the corrected text at the end, in one piece."""

    __slots__ = ("_inner",)

    def __init__(self, name: str, schema: ToolSchema, rules: Rules) -> None:
        self._inner = LiveArguments(name, schema, rules)
        super().__init__(self._inner.fragments)

    def finish(self, *, ended: bool | None = None) -> Outcome:
        """The call is over. The corrected text is the outcome's `rest`."""
        outcome = self._inner.finish(ended=ended)
        if not outcome.complete:
            return msgspec.structs.replace(outcome, text="", rest="")
        return msgspec.structs.replace(outcome, rest=outcome.text)


def assemble(mode: Mode, name: str, schema: ToolSchema, rules: Rules) -> LiveArguments | WholeArguments:
    """The assembly of one call's arguments, in the mode of the client's profile."""
    return (LiveArguments if mode == "live" else WholeArguments)(name, schema, rules)


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = parse_plain(text)
    except NotJson:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
