"""Splits reasoning in tags from the answer's text while it streams.

Tags count only at the beginning of the answer. Further on, the answer talks about tags (koma#63). Servers
leave tags in the text if they have no reasoning parser for the model, or the wrong one.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Literal

Piece = tuple[Literal["text", "thinking"], str]

# How each model family marks its reasoning, if the server has no parser for it.
_PAIRS = {
    "<think>": "</think>",  # DeepSeek, Qwen, GLM, MiniMax
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|START_THINKING|>": "<|END_THINKING|>",  # Command
    "[THINK]": "[/THINK]",  # Magistral
    "◁think▷": "◁/think▷",  # Kimi-VL
    "<|channel|>analysis<|message|>": "<|end|>",  # harmony
    "<|channel>thought\n": "<channel|>",  # Gemma 4
    "<|open|>think<|sep|>": "<|close|>think<|sep|>",  # Kimi K3
    "<|content_thinking|>": "<|end_message|>",  # Inkling
    "<|message_model|><|content_thinking|>": "<|end_message|>",
}
# Tags that carry no text at the beginning of an answer: the end of reasoning that arrived in its own field
# or whose opening tag was part of the prompt, and the tokens with which harmony begins the answer.
_ORPHANS = (
    *(close for close in _PAIRS.values() if close[1] == "/"),
    "<|close|>think<|sep|>",
    "<|channel|>final<|message|>",
    "<|start|>assistant<|channel|>final<|message|>",
)
_OPENINGS = (*_PAIRS, *_ORPHANS)
_BEGINNINGS = frozenset(tag[:size] for tag in _OPENINGS for size in range(len(tag)))
_WORDS = re.compile(rf"[^\s{''.join({re.escape(tag[0]) for tag in _OPENINGS})}]")
"""The first character of an answer that does not begin with a tag."""
_MAX_BLANK = 1024  # no template writes more blanks before a tag
_CLOSING = tuple(close for close in _PAIRS.values() if close[1] == "/")
_UNOPENED = re.compile("|".join(map(re.escape, _CLOSING)))
_OVERLAP = max(map(len, _CLOSING)) - 1
_MAX_QUOTED = 32  # closing tags in code: an answer with more of them talks about tags


class ThinkSplitter:
    """Takes text and returns pieces of answer and of reasoning, in order.

    `unopened`: text before a lone `</think>` is reasoning too. All text is then held until that tag or the
    end, so this is only for bodies that are not streamed.
    """

    __slots__ = ("_before", "_blank", "_close", "_held", "_state", "_tail", "_unopened")

    def __init__(self, *, unopened: bool = False) -> None:
        self._unopened = unopened
        self._state: Literal["start", "thinking", "held", "text"] = "start"
        self._held: list[str] = []
        self._tail = ""  # the end of the held text: a closing tag may begin in it
        self._close = ""  # the closing tag of the open pair
        self._before = ""  # the last character of the reasoning so far
        self._blank = True  # keep blanks before the answer: no tag stands before them

    @property
    def holding(self) -> bool:
        return bool(self._held)

    @property
    def passing(self) -> bool:
        """Whether all text from now on is answer text."""
        return self._state == "text" and not self._held

    def passes(self, text: str) -> bool:
        """Whether this text passes unchanged. Most answers begin with a plain word, which decides it."""
        if self._state == "start" and not (self._held or self._unopened) and _WORDS.match(text):
            self._state = "text"
        return self._state == "text" and not self._held

    def reasoning_seen(self) -> None:
        """Reasoning arrived in its own field: the text has no reasoning without an opening tag."""
        self._unopened = False
        if self._state == "held":
            self._state = "text"

    def feed(self, text: str) -> list[Piece]:
        if self.passes(text):
            return [("text", text)] if text else []
        return self._run(text, last=False)

    def close(self) -> list[Piece]:
        """The answer is over: return the held text as the kind it was taken for."""
        return self._run("", last=True)

    def _run(self, text: str, *, last: bool) -> list[Piece]:
        out: list[Piece] = []
        self._held.append(text)
        if self._state == "held" and not last:
            seen = self._tail + text
            self._tail = seen[-_OVERLAP:]
            if not _UNOPENED.search(seen):
                return out  # no closing tag yet: there is nothing to decide
        rest: str | None = "".join(self._held)
        self._held = []
        while rest:
            rest = self._step(rest, out, last)
        return out

    def _step(self, text: str, out: list[Piece], last: bool) -> str | None:
        match self._state:
            case "start":
                return self._start(text, out, last)
            case "thinking":
                return self._thinking(text, out, last)
            case "held":
                return self._before_close(text, out, last)
            case "text":
                out.append(("text", text))
                return None

    def _start(self, text: str, out: list[Piece], last: bool) -> str | None:
        words = text.lstrip()
        too_many_blanks = len(text) - len(words) > _MAX_BLANK
        opening = None
        if words.startswith(_OPENINGS):
            opening = next(tag for tag in _OPENINGS if words.startswith(tag))
        elif words in _BEGINNINGS and not (too_many_blanks or last):
            self._held.append(text)
            return None
        if opening is None or too_many_blanks:
            self._state = "held" if self._unopened else "text"
            return text if self._blank else words
        self._blank = False
        self._unopened = False
        if opening in _PAIRS:
            self._state, self._close, self._before = "thinking", _PAIRS[opening], ""
        return words[len(opening) :]

    def _thinking(self, text: str, out: list[Piece], last: bool) -> str | None:
        end = self._find_close(text, last)
        if end:
            out.append(("thinking", text[:end]))
            self._before = text[end - 1]
        if end == len(text):
            return None
        if not text.startswith(self._close, end) or self._may_be_quoted(text, end, last):
            self._held.append(text[end:])
            return None
        self._state = "start"
        return text[end + len(self._close) :]

    def _find_close(self, text: str, last: bool) -> int:
        """Where the reasoning ends, or where a cut closing tag may begin."""
        at = text.find(self._close)
        while at >= 0 and self._is_quoted(text, at):
            at = text.find(self._close, at + 1)
        if at >= 0 or last:
            return at if at >= 0 else len(text)
        tail = text.find(self._close[0], max(0, len(text) - len(self._close) + 1))
        while tail >= 0 and not self._close.startswith(text[tail:]):
            tail = text.find(self._close[0], tail + 1)
        return tail if tail >= 0 else len(text)

    def _is_quoted(self, text: str, at: int) -> bool:
        """Whether the tag is in backticks: then the reasoning is about the tag."""
        after = at + len(self._close)
        return self._before_is_tick(text, at) and text[after : after + 1] == "`"

    def _may_be_quoted(self, text: str, at: int, last: bool) -> bool:
        ended = at + len(self._close) == len(text)
        return ended and not last and self._before_is_tick(text, at)

    def _before_is_tick(self, text: str, at: int) -> bool:
        return (text[at - 1] if at else self._before) == "`"

    def _before_close(self, text: str, out: list[Piece], last: bool) -> str | None:
        found = list(islice(_UNOPENED.finditer(text), _MAX_QUOTED))
        close = next((mark for mark in found if not _in_code(text, mark.start())), None)
        if close is None or any(tag in text[: close.start()] for tag in _PAIRS):
            # An opening tag in the middle, or many closing ones in code: the answer talks about tags.
            if close or last or len(found) == _MAX_QUOTED:
                self._state = "text"
                return text
            self._tail = text[-_OVERLAP:]
            self._held.append(text)
            return None
        out.append(("thinking", text[: close.start()]))
        self._state, self._blank, self._unopened = "start", False, False
        return text[close.end() :]


def _in_code(text: str, at: int) -> bool:
    """Whether a position is in inline code or in a fence: an odd number of marks is before it."""
    line = text.rfind("\n", 0, at) + 1
    return bool(text.count("`", line, at) % 2 or text.count("```", 0, at) % 2)
