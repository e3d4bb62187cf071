"""The sources of an answer's text: Gemini names them in the metadata of the candidate, after the text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....model.messages import Citation
from ...common.fields import Obj, is_array, is_object
from . import wire

_KINDS = ("web", "retrievedContext", "maps")
_MOST_KEPT = 200_000


class CitedText:
    """A text block that sources may cite. Gemini counts bytes, other protocols count characters.

    Only text that is not ASCII is kept, up to a limit: it is needed to tell the two apart.
    """

    __slots__ = ("_kept", "_runs", "block")

    def __init__(self, block: int) -> None:
        self.block = block
        self._runs: list[int | str] = []
        """The text so far: the length of each run of ASCII pieces, and the other pieces."""
        self._kept = 0

    def add(self, text: str) -> None:
        if not text.isascii():
            self._kept += len(text)
            if self._kept <= _MOST_KEPT:
                self._runs.append(text)
        elif self._runs and isinstance(last := self._runs[-1], int):
            self._runs[-1] = last + len(text)
        else:
            self._runs.append(len(text))

    def characters(self, size: int) -> int | None:
        """The number of characters in the first `size` bytes; None if unknown."""
        if self._kept > _MOST_KEPT:
            return None
        count = 0
        for run in self._runs:
            data = b"" if isinstance(run, int) else run.encode()
            length = run if isinstance(run, int) else len(data)
            if size <= length:
                return count + (size if isinstance(run, int) else len(data[:size].decode(errors="ignore")))
            size -= length
            count += run if isinstance(run, int) else len(run)
        return count


def read_sources(candidate: wire.Candidate, text: CitedText) -> list[Citation]:
    """The citations of `text`, the newest text of the answer."""
    found = [*_cited(candidate.citationMetadata, text), *_grounded(candidate.groundingMetadata, text)]
    return list(dict.fromkeys(found))


def _cited(cited: Any, text: CitedText) -> Iterator[Citation]:
    if not is_object(cited):
        return
    for source in _objects(cited.get("citationSources") or cited.get("citations")):
        if source.get("uri"):
            title = str(source.get("title") or "")
            yield _placed(Citation(str(source["uri"]), title), source, text)


def _grounded(grounding: Any, text: CitedText) -> Iterator[Citation]:
    """A page for each segment of the text that it supports, then the pages that support no segment."""
    if not is_object(grounding):
        return
    pages = grounding.get("groundingChunks")
    pages = [_page(page) for page in pages] if is_array(pages) else []
    supporting: set[int] = set()
    for support in _objects(grounding.get("groundingSupports")):
        segment: Any = support.get("segment")
        numbers: Any = support.get("groundingChunkIndices")
        for number in numbers if is_array(numbers) else ():
            page = pages[number] if type(number) is int and 0 <= number < len(pages) else None
            if page is not None:
                supporting.add(number)
                yield _placed(page, segment if is_object(segment) else {}, text)
    for number, page in enumerate(pages):
        if page is not None and number not in supporting:
            yield page


def _objects(value: Any) -> list[Obj]:
    return [item for item in value if is_object(item)] if is_array(value) else []


def _page(chunk: Any) -> Citation | None:
    for kind in _KINDS:
        page = chunk.get(kind) if is_object(chunk) else None
        if is_object(page) and page.get("uri"):
            return Citation(str(page["uri"]), str(page.get("title") or ""))
    return None


def _placed(source: Citation, segment: Obj, text: CitedText) -> Citation:
    """`source`, with its place in `text`. Gemini leaves out a start of 0."""
    quoted = str(segment.get("text") or "")
    begin, end = segment.get("startIndex"), segment.get("endIndex")
    start = text.characters(begin if type(begin) is int else 0) if type(end) is int else None
    if start is None or type(end) is not int:
        return Citation(source.url, source.title, quoted)
    stop = start + len(quoted) if quoted else text.characters(end)
    return Citation(source.url, source.title, quoted, start, stop)
