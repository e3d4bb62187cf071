"""After a web search by Dragoman, turn each address of a found page in the model's text into a citation."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..model.events import BlockEnd, BlockStart, CitationAdded, Event, TextDelta
from ..model.messages import Citation, Search, Source, Text

# The characters that may follow an address in a text: "https://a.example/x" is not "https://a.example/xy".
_ENDS = r"/?(?![\w%/~-]|[.?#&=]\w)"


class CitationStage:
    """Reads the text blocks of one answer. The citations of a block come just before its end."""

    def __init__(self) -> None:
        self._sources: dict[str, Source] = {}
        self._texts: dict[int, list[str]] = {}

    def add(self, found: Sequence[Search]) -> None:
        """Add found pages, which the text may cite."""
        for search in found:
            for source in search.sources:
                self._sources.setdefault(source.url.rstrip("/"), source)

    def process(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if type(event) is TextDelta and event.block in self._texts:
                self._texts[event.block].append(event.text)
            elif type(event) is BlockStart and type(event.part) is Text:
                self._texts[event.block] = [event.part.text]
            elif type(event) is BlockEnd and event.block in self._texts:
                text = "".join(self._texts.pop(event.block))
                out += [CitationAdded(event.block, citation) for citation in self._cited(text)]
            out.append(event)
        return out

    def _cited(self, text: str) -> list[Citation]:
        found: list[Citation] = []
        for url, source in self._sources.items():
            named = re.search(re.escape(url) + _ENDS, text) if url in text else None
            if named is not None:
                cited = Citation(source.url, source.title, source.text[:150], named.start(), named.end())
                found.append(cited)
        return sorted(found, key=lambda citation: citation.start or 0)
