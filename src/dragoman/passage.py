"""Same protocol on both sides: the upstream's own frames pass while there is nothing to mend.

Decoder and encoder run all the same, so that the encoder can take over at any frame with the same ids and
indexes. Each frame comes here twice: as it was, and as the encoder would write it. As long as everything
the frames say has been said to the client as well, they go out as they were. A frame waits while something
of it is held back (half a key, the beginning of a tag) or while it announces an end that is not confirmed.
The first frame that says something else than the client is to hear shuts the passage for good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from .alike import Pattern, Run
from .events import DELTAS, BlockEnd, Event, Ping, Unknown, UsageSeen
from .wire.frames import Frame, framed

End = Literal["open", "announced", "over"]
_BESIDE = frozenset({UsageSeen, Ping, Unknown})


class Passage:
    """Chooses, frame by frame, between the original and the rebuilt."""

    __slots__ = ("_around", "_follow", "_open", "_pattern", "_said", "_verbatim", "_waiting")

    def __init__(self, verbatim: Callable[[Frame], bytes], follow: Callable[[Frame], None]) -> None:
        self._verbatim = verbatim
        self._follow = follow
        self._open = True
        self._waiting: list[tuple[list[Frame], bytes]] = []
        self._said: tuple[Said, Said] | None = None
        """What came and what went since nothing waited."""
        self._pattern: Pattern | None = None
        self._around = [b"", b""]
        """What stands before and after the words of its frames."""

    def frame(self, frame: Frame, came: list[Event], went: list[Event], rebuilt: bytes, end: End) -> bytes:
        """The bytes to send for `frame`."""
        if not self._open:
            return rebuilt
        if not self._waiting and end != "announced" and came == went:
            self._follow(frame)
            return self._verbatim(frame)
        return self._weigh([frame], came, went, rebuilt, end)

    def run(self, run: Run, went: list[Event], announced: bool) -> bytes | None:
        """The bytes of some frames alike, if they may pass at once."""
        if announced or self._waiting or not self._open or len(went) != 1 or went[0] is not run.delta:
            return None
        if run.events is not None:
            return b"".join(map(self._verbatim, run.frames()))
        if run.pattern is not self._pattern:
            self._pattern = run.pattern
            self._around = self._verbatim(run.pattern.with_words(b"\0")).split(b"\0")
        head, tail = self._around
        return framed(head, run.insides, tail)

    def weigh_run(self, run: Run, went: list[Event], rebuilt: bytes, announced: bool) -> bytes:
        """The bytes to send for others."""
        if not self._open:
            return rebuilt
        return self._weigh(run.frames(), [run.delta], went, rebuilt, "announced" if announced else "open")

    def _weigh(
        self, frames: list[Frame], came: list[Event], went: list[Event], rebuilt: bytes, end: End
    ) -> bytes:
        self._waiting.append((frames, rebuilt))
        before, now = self._added(came, went)
        if not now.within(before, went):
            return self.shut()
        agreed = now.equals(before)
        if end == "over":
            return self._release() if agreed else self.shut()
        return self._release() if agreed and end == "open" else b""

    def end(self, came: list[Event], went: list[Event], rebuilt: bytes) -> bytes:
        """The upstream's bytes are over; these last events came without a frame."""
        if not self._open:
            return rebuilt
        before, now = self._added(came, went)
        return self._release() if now.equals(before) else self.shut() + rebuilt

    def _added(self, came: list[Event], went: list[Event]) -> tuple[Said, Said]:
        if self._said is None:
            self._said = (Said(), Said())
        before, now = self._said
        before.add(came)
        now.add(went)
        return before, now

    def shut(self) -> bytes:
        """From here on everything is rebuilt; what waited goes out that way too."""
        self._open = False
        waiting, self._waiting = self._waiting, []
        return b"".join(rebuilt for _, rebuilt in waiting)

    def _release(self) -> bytes:
        waiting, self._waiting = self._waiting, []
        self._said = None
        released = [frame for frames, _ in waiting for frame in frames]
        for frame in released:
            self._follow(frame)
        return b"".join(map(self._verbatim, released))


class Said:
    """What some frames said: texts by block, what belongs to no block, and everything else in order."""

    __slots__ = ("_beside", "_length", "_others", "_texts")

    def __init__(self) -> None:
        self._others: list[Event] = []
        self._beside: list[Event] = []
        self._texts: dict[int, list[str]] = {}
        self._length = 0

    def add(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, DELTAS):
                self._texts.setdefault(event.block, []).append(event.text)
                self._length += len(event.text)
            elif type(event) in _BESIDE:
                self._beside.append(event)
            else:
                self._others.append(event)

    def within(self, more: Said, last: Sequence[Event] = ()) -> bool:
        """Could this still become `more`? `last` was added to it: the texts of blocks that ended are over."""
        if self._length > more._length:
            return False
        if not (_begins(self._others, more._others) and _begins(self._beside, more._beside)):
            return False
        ended = [event.block for event in last if type(event) is BlockEnd]
        return all(self._joined_in(block) == more._joined_in(block) for block in ended)

    def equals(self, other: Said) -> bool:
        if self._length != other._length or len(self._others) != len(other._others):
            return False
        return len(self._beside) == len(other._beside) and self._joined() == other._joined()

    def _joined_in(self, block: int) -> str:
        return "".join(self._texts.get(block, ()))

    def _joined(self) -> dict[int, str]:
        return {block: "".join(texts) for block, texts in self._texts.items()}


def _begins(these: list[Event], those: list[Event]) -> bool:
    return these == those[: len(these)]
