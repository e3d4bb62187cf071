"""The file format of recordings: one line with the format's name, then independent frames.

    dragoman recording 1⏎  ┌ 4 bytes ┬ zlib ──────────────┐ ┌ 4 bytes ┬ …
                           │ length  │ msgpack: [record…] │

A reader ignores a last frame that is cut off. The format is documented in
`docs/reference/recording-format.md`.
"""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from .. import __version__
from ..model.errors import DragomanError
from ..observe.tap import (
    ClientBytes,
    ClientRequest,
    ExchangeBegan,
    ExchangeEnded,
    Record,
    Redactor,
    Ring,
    SearchResults,
    Tap,
    Track,
    UpstreamBytes,
    UpstreamFailure,
    UpstreamRequest,
    UpstreamStatus,
)
from .redact import RecordFilter

ENDING = ".dragoman"
MAGIC = b"dragoman recording 1\n"
_LENGTH = struct.Struct(">I")
# The limit for an unpacked frame, against compression bombs. `server.max_body` is far below it.
_LARGEST = 1 << 30

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Record]).decode


class RecordingError(DragomanError):
    """The file is not a recording, or it cannot be replayed."""


class RecordedCall(msgspec.Struct):
    """One request to an upstream, and its answer."""

    request: UpstreamRequest
    status: int | None = None
    received: list[UpstreamBytes] = []
    failed: UpstreamFailure | None = None
    searched: SearchResults | None = None


class Recording(msgspec.Struct, frozen=True):
    """One recorded exchange."""

    begun: ExchangeBegan
    request: ClientRequest | None
    calls: tuple[RecordedCall, ...]
    sent_chunks: tuple[ClientBytes, ...]
    ended: ExchangeEnded | None
    """None if the file is cut off."""

    @property
    def sent(self) -> bytes:
        """The answer that the client got, without keepalives."""
        return b"".join(record.data for record in self.sent_chunks if not record.alive)


def file_header(track: Track) -> bytes:
    """The first bytes of a recording."""
    return MAGIC + frame([ExchangeBegan(0.0, track.id, track.at, track.client, __version__)])


def exchange_in(path: Path) -> str:
    """The id of the exchange, from the name of its recording."""
    return path.name.removesuffix(ENDING).rpartition("-")[2]


def file_name(track: Track) -> str:
    """The names of recordings sort by time."""
    when = time.strftime("%Y%m%d-%H%M%S", time.gmtime(track.at))
    return f"{when}-{track.id}{ENDING}"


def frame(records: list[Record]) -> bytes:
    data = zlib.compress(_encode([_portable(record) for record in records]), 6)
    return _LENGTH.pack(len(data)) + data


def dump(track: Track, redactor: Redactor) -> bytes:
    """The records of `track` in memory, as a recording."""
    filter_ = RecordFilter(redactor, track)
    return file_header(track) + frame([*filter_.filter(track.records), *filter_.flush()])


def load(path: Path) -> Recording:
    try:
        return loads(path.read_bytes(), str(path))
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}") from None


def loads(data: bytes, name: str = "this") -> Recording:
    """Read a recording. Raises RecordingError; `name` is for its message."""
    return _assemble(*_read(data, name))


def restored(data: bytes, name: str = "this") -> Track:
    """A recording as the track that it was written from. Raises RecordingError."""
    begun, records = _read(data, name)
    track = Track(Tap(Ring(0)), begun.id, begun.client, begun.at)
    track.restore(records)
    return track


def _read(data: bytes, name: str) -> tuple[ExchangeBegan, list[Record]]:
    if not data.startswith(MAGIC):
        raise RecordingError(
            f"{name} is not a recording: it does not start with {MAGIC.decode().strip()!r}; "
            "give a file from `dragoman serve --record` or from the inspector"
        )
    try:
        records = [record for some in _frames(data) for record in _decode(some)]
    except (zlib.error, msgspec.MsgspecError, EOFError) as error:
        raise RecordingError(f"{name} is damaged: {error}") from None
    if not records or not isinstance(records[0], ExchangeBegan):
        raise RecordingError(f"{name} is empty: it was cut off inside its first frame")
    # Sort by time: a chunk that may hold a part of a secret is written later than its neighbours.
    return records[0], sorted(records[1:], key=lambda record: record.t)


def _frames(data: bytes) -> Iterator[bytes]:
    at = len(MAGIC)
    while at + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if at + length > len(data):
            return
        unpacked = zlib.decompressobj()
        yield unpacked.decompress(data[at : at + length], _LARGEST)
        if not unpacked.eof:
            raise EOFError("a frame has no end, or is too large")
        at += length


def _assemble(begun: ExchangeBegan, records: Iterable[Record]) -> Recording:
    calls: dict[int, RecordedCall] = {}
    sent: list[ClientBytes] = []
    read: ClientRequest | None = None
    ended: ExchangeEnded | None = None
    for record in records:
        match record:
            case ClientRequest():
                read = record
            case UpstreamRequest():
                calls[record.call] = RecordedCall(record, received=[])
            case UpstreamStatus() | UpstreamBytes() | UpstreamFailure() | SearchResults():
                if record.call in calls:
                    _add(calls[record.call], record)
            case ClientBytes():
                sent.append(record)
            case ExchangeEnded():
                ended = record
            case ExchangeBegan():
                pass
    return Recording(begun, read, tuple(calls.values()), tuple(sent), ended)


def _add(
    call: RecordedCall, record: UpstreamStatus | UpstreamBytes | UpstreamFailure | SearchResults
) -> None:
    match record:
        case UpstreamStatus():
            call.status = record.status
        case UpstreamBytes():
            call.received.append(record)
        case UpstreamFailure():
            call.failed = record
        case SearchResults():
            call.searched = record


def _portable(record: Record) -> Record:
    """Remove the clock, which cannot be encoded, and members that the recorded request has, too."""
    if not isinstance(record, UpstreamRequest) or record.setup is None:
        return record
    options = msgspec.structs.replace(
        record.setup.options, clock=None, elapsed=None, on_response=None, echo={}
    )
    return msgspec.structs.replace(record, setup=msgspec.structs.replace(record.setup, options=options))
