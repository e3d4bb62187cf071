"""The file of a recording: a line that says what it is, then frames that each can be read alone.

    dragoman recording 1⏎  ┌ 4 bytes ┬ zlib ──────────────┐ ┌ 4 bytes ┬ …
                           │ length  │ msgpack: [record…] │

A frame that is cut off is left out: what was written before it is whole. Documented for others in
`docs/reference/recording-format.md`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from .. import __version__
from ..model.errors import DragomanError
from ..observe.tap import (
    Answered,
    Asked,
    Begun,
    Broke,
    Came,
    Ended,
    Read,
    Record,
    Redactor,
    Searched,
    Track,
    Went,
)
from .redact import Censor

ENDING = ".dragoman"
MAGIC = b"dragoman recording 1\n"
_LENGTH = struct.Struct(">I")
# A request body may be as large as `server.max_body`; nothing honest is larger than this.
_LARGEST = 1 << 30

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Record]).decode


class RecordingError(DragomanError):
    """A file that is no recording, or one that cannot be played."""


class Call(msgspec.Struct):
    """One request to an upstream, and what came of it."""

    asked: Asked
    status: int | None = None
    came: list[Came] = []
    broke: Broke | None = None
    searched: Searched | None = None


class Recording(msgspec.Struct, frozen=True):
    """One exchange, as far as it was written down."""

    begun: Begun
    read: Read | None
    calls: tuple[Call, ...]
    went: tuple[Went, ...]
    ended: Ended | None
    """None: the file breaks off."""

    @property
    def sent(self) -> bytes:
        """What the client got of the answer. Keepalives are no part of it."""
        return b"".join(record.data for record in self.went if not record.alive)


def opening(track: Track) -> bytes:
    """How the file of `track` begins."""
    return MAGIC + frame([Begun(0.0, track.id, track.at, track.client, __version__)])


def frame(records: list[Record]) -> bytes:
    data = zlib.compress(_encode([_portable(record) for record in records]), 6)
    return _LENGTH.pack(len(data)) + data


def dumped(track: Track, redactor: Redactor) -> bytes:
    """What the ring has of `track`, as a recording."""
    censor = Censor(redactor, track)
    return opening(track) + frame([*censor.passed(track.records), *censor.rest()])


def load(path: Path) -> Recording:
    try:
        return loads(path.read_bytes(), str(path))
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}") from None


def loads(data: bytes, name: str = "this") -> Recording:
    """Raises RecordingError, which calls the data `name`."""
    if not data.startswith(MAGIC):
        raise RecordingError(
            f"{name} is not a recording: it does not begin with {MAGIC.decode().strip()!r}; "
            "give a file that `dragoman serve --record` or the inspector wrote"
        )
    try:
        records = [record for some in _frames(data) for record in _decode(some)]
    except (zlib.error, msgspec.MsgspecError, EOFError) as error:
        raise RecordingError(f"{name} is damaged: {error}") from None
    if not records or not isinstance(records[0], Begun):
        raise RecordingError(f"{name} holds nothing: it was cut off before its first frame was whole")
    # A chunk is written when it is known to hold no part of a secret: perhaps after its neighbours.
    return _assembled(records[0], sorted(records[1:], key=lambda record: record.t))


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
            raise EOFError("a frame does not end, or is larger than it may be")
        at += length


def _assembled(begun: Begun, records: Iterable[Record]) -> Recording:
    calls: dict[int, Call] = {}
    went: list[Went] = []
    read: Read | None = None
    ended: Ended | None = None
    for record in records:
        match record:
            case Read():
                read = record
            case Asked():
                calls[record.call] = Call(record, came=[])
            case Answered() | Came() | Broke() | Searched():
                if record.call in calls:
                    _add(calls[record.call], record)
            case Went():
                went.append(record)
            case Ended():
                ended = record
            case Begun():
                pass
    return Recording(begun, read, tuple(calls.values()), tuple(went), ended)


def _add(call: Call, record: Answered | Came | Broke | Searched) -> None:
    match record:
        case Answered():
            call.status = record.status
        case Came():
            call.came.append(record)
        case Broke():
            call.broke = record
        case Searched():
            call.searched = record


def _portable(record: Record) -> Record:
    """Without the clock, which is not a value, and without what the recorded request says too."""
    if not isinstance(record, Asked) or record.setup is None:
        return record
    options = msgspec.structs.replace(record.setup.options, clock=None, elapsed=None, echo={})
    return msgspec.structs.replace(record, setup=msgspec.structs.replace(record.setup, options=options))
