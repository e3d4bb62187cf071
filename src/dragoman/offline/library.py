"""The recordings of a folder, found by what their requests ask."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ..model.errors import DragomanError, Fault
from ..model.events import Event
from ..model.messages import Request
from ..protocols.common.collect import Answer, collect
from ..protocols.common.tool_names import ToolNames
from ..protocols.registry import client_protocol
from ..recording import ENDING, Recording, RecordingError, load
from ..recording.format import RecordedCall
from ..recording.replay import answering_calls, is_partial
from ..translation.translation import Translation
from .canonical import Form, canonical
from .difference import first_difference, nearness

log = logging.getLogger("dragoman.replay")


class NoRecording(DragomanError):
    """No recording answers the request. Status 400: SDKs do not retry it."""

    status = 400
    fault: Fault = "client"


class RecordingEntry(msgspec.Struct, frozen=True):
    """One usable recording."""

    path: Path
    recording: Recording
    request: Request
    form: Form

    @property
    def calls(self) -> tuple[RecordedCall, ...]:
        """The calls of the target that answered."""
        return tuple(answering_calls(self.recording))


class Library:
    """All recordings of a folder and of its folders."""

    def __init__(self, folder: Path) -> None:
        """Raises RecordingError if `folder` is no folder. Files that cannot be used are logged."""
        if not folder.is_dir():
            raise RecordingError(
                f"{folder} is not a folder: give the folder of `dragoman serve --record DIR`"
            )
        self.folder = folder
        self._entries: dict[str, list[RecordingEntry]] = {}
        self._asked: Counter[str] = Counter()
        found: list[RecordingEntry] = []
        for path in folder.rglob(f"*{ENDING}"):
            try:
                found.append(_entry(path, load(path)))
            except DragomanError as error:
                log.warning("%s is not used: %s", path, error)
        for entry in in_time(found):
            self._entries.setdefault(_key(entry.form), []).append(entry)

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    @property
    def entries(self) -> list[RecordingEntry]:
        return [entry for entries in self._entries.values() for entry in entries]

    def match(self, request: Request) -> RecordingEntry:
        """The recording that answers `request`. Raises NoRecording.

        Of several recordings with the same request, the first request gets the first one, and so on; the last
        one answers all that follow.
        """
        form = canonical(request)
        key = _key(form)
        entries = self._entries.get(key)
        if entries is None:
            raise NoRecording(self._miss(form))
        number = min(self._asked[key], len(entries) - 1)
        self._asked[key] += 1
        return entries[number]

    def _miss(self, form: Form) -> str:
        entries = self.entries
        if not entries:
            return f"no recording answers this request: {self.folder} has no usable recording"
        nearest = max(entries, key=lambda entry: nearness(entry.form, form))
        difference = first_difference(nearest.form, form)
        name = nearest.path.relative_to(self.folder)
        return (
            f"no recording in {self.folder} answers this request. The nearest one is {name}, and the first "
            f"difference is at {difference}. If the change is meant, record the conversation again "
            "(--on-miss record)"
        )


def in_time(entries: Iterable[RecordingEntry]) -> list[RecordingEntry]:
    """The entries in the order of their requests, by the time inside: names have only seconds."""
    return sorted(entries, key=lambda entry: (entry.recording.begun.at, entry.path))


def read_entry(path: Path) -> RecordingEntry:
    """One recording. Raises RecordingError if it cannot be used."""
    try:
        return _entry(path, load(path))
    except RecordingError as error:
        raise RecordingError(f"{path} cannot be used: {error}") from None


def recorded_answer(entry: RecordingEntry) -> tuple[Translation, Answer]:
    """What the recorded model said first, mended: the translation after its end, and the content."""
    call = entry.calls[0]
    setup = call.request.setup
    events: list[Event] = []
    names = ToolNames(entry.request.tools, setup.names) if setup is not None else entry.request.tools
    options = setup.options if setup is not None else None
    exchange = Translation(call.request.protocol, entry.recording.begun.client, tools=names, options=options)
    exchange.tap = events.extend
    for chunk in call.received:
        exchange.feed(chunk.data)
    exchange.close()
    return exchange, collect(events)


def _entry(path: Path, recording: Recording) -> RecordingEntry:
    asked = recording.request
    if asked is None or is_partial(recording) or (recording.ended and recording.ended.dropped):
        raise RecordingError("it is not complete")
    if not recording.calls:
        raise RecordingError("no upstream was asked")
    client = client_protocol(recording.begun.client, asked.path)
    request = client.read_request(asked.body, asked.path)
    return RecordingEntry(path, recording, request, canonical(request))


def _key(form: Form) -> str:
    return hashlib.sha256(msgspec.json.encode(form, order="sorted")).hexdigest()
