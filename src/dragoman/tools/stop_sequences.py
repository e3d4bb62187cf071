"""Stop sequences for upstreams without them: the answer is cut where one would have stopped it."""

from __future__ import annotations

import re
from collections.abc import Sequence


class StopMatcher:
    """Finds the first stop sequence in text that arrives in pieces. Holds text that may begin one."""

    def __init__(self, sequences: Sequence[str]) -> None:
        wanted = [s for s in sequences if s]
        # At one position the longest sequence wins.
        self._pattern = re.compile("|".join(re.escape(s) for s in sorted(wanted, key=len, reverse=True)))
        self._prefixes = {s[:n] for s in wanted for n in range(1, len(s))}
        self._longest = max(map(len, wanted), default=0)
        self._held = ""

    def feed(self, text: str) -> tuple[str, str | None]:
        """The text that may go out, and the stop sequence that ended it, if any."""
        text = self._held + text
        found = self._pattern.search(text)
        if found is not None:
            self._held = ""
            return text[: found.start()], found[0]
        keep = self._partial_length(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep], None

    def flush(self) -> str:
        held, self._held = self._held, ""
        return held

    def _partial_length(self, text: str) -> int:
        for size in range(min(self._longest - 1, len(text)), 0, -1):
            if text[-size:] in self._prefixes:
                return size
        return 0
