"""Read one field of a protobuf message without its schema.

A path leads to the field: `1.2` is field 2 of the message in field 1. `1[1=NAME].2` takes the field 1 whose
own field 1 is the text NAME: an entry of a map. `base64` decodes the text that the path has reached so far,
because programs store messages as text, also inside other messages.

Nothing here raises, except for a path that is written wrongly: a traceback could show the secret.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import NamedTuple

from .base import ReadProblem

# A value of an application's state has few fields. The limit bounds the work for other data.
MAX_FIELDS = 10_000
# The largest field number that protobuf allows.
_MAX_NUMBER = (1 << 29) - 1
_MAX_VARINT = 10
"""Bytes of a 64-bit number."""
_FIXED = {1: 8, 5: 4}
"""Wire types of a fixed length in bytes."""

_STEP = re.compile(r"(?:^|\.)(?:(base64)|(\d{1,9})(?:\[(\d{1,9})=([^\]]+)\])?)(?=\.|$)")

Value = bytes | int


class PathStep(NamedTuple):
    """One step of a path: a field, or the decoding of base64 if `number` is 0."""

    text: str
    number: int = 0
    key: int = 0
    """The field of the wanted message that identifies it; 0: any message."""
    name: bytes = b""
    """The value of that field."""

    def fits(self, value: Value) -> bool:
        if not self.key:
            return True
        inner = fields(value) if isinstance(value, bytes) else None
        return inner is not None and (self.key, self.name) in inner


class FieldValue(NamedTuple):
    """The value at a path, and the message that contains it."""

    value: Value
    message: bytes


def parse_path(text: str) -> tuple[PathStep, ...]:
    """The steps of a path. Raises ValueError with a sentence for the user."""
    steps: list[PathStep] = []
    at = 0
    while match := _STEP.match(text, at):
        decoded, number, key, name = match.groups()
        shown = match[0].removeprefix(".")
        if decoded:
            steps.append(PathStep(shown))
        elif 0 < int(number) <= _MAX_NUMBER and (key is None or 0 < int(key) <= _MAX_NUMBER):
            steps.append(PathStep(shown, int(number), int(key or 0), (name or "").encode()))
        else:
            break
        at = match.end()
    if at < len(text) or not steps or not steps[-1].number:
        raise ValueError(
            "a protobuf path is a list of field numbers with dots, such as 1.2, "
            "`base64` where text must be decoded, and 1[1=NAME] for the entry called NAME"
        )
    return tuple(steps)


def find(data: bytes, steps: tuple[PathStep, ...]) -> FieldValue | ReadProblem:
    """Follow `steps` from the message in `data`. If a field occurs several times, the last one counts."""
    value: Value = data
    message = b""
    for count, step in enumerate(steps):
        at = " at `" + ".".join(one.text for one in steps[:count]) + "`" if count else ""
        if isinstance(value, int):
            return ReadProblem(f"contains a number{at}, not a message")
        if not step.number:
            decoded = decode_base64(value)
            if decoded is None:
                return ReadProblem(f"contains no base64{at}")
            value = decoded
            continue
        inner = fields(value)
        if inner is None:
            return ReadProblem(f"contains no protobuf message{at}")
        matches = [found for number, found in inner if number == step.number and step.fits(found)]
        if not matches:
            return ReadProblem(f"contains no field `{step.text}`{at}")
        value, message = matches[-1], value
    return FieldValue(value, message)


def decode_base64(data: bytes) -> bytes | None:
    """The bytes behind base64 of either alphabet, with or without padding; None if it is something else."""
    text = data.strip().rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    if not text:
        return None
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None


def fields(data: bytes) -> list[tuple[int, Value]] | None:
    """The numbers and values of a message's fields; None if `data` is not a message.

    A length-delimited value (text, bytes, a message) is bytes, any other value an unsigned number. Groups
    are not read: no program of today writes them.
    """
    found: list[tuple[int, Value]] = []
    at = 0
    while at < len(data):
        tag = _varint(data, at)
        if tag is None or len(found) == MAX_FIELDS:
            return None
        number, wire = tag[0] >> 3, tag[0] & 7
        read = _value(data, tag[1], wire)
        if read is None or not 0 < number <= _MAX_NUMBER:
            return None
        value, at = read
        found.append((number, value))
    return found


def _value(data: bytes, at: int, wire: int) -> tuple[Value, int] | None:
    """The value that begins at `at`, and where it ends."""
    if wire == 0:
        return _varint(data, at)
    if wire in _FIXED:
        end = at + _FIXED[wire]
        return (int.from_bytes(data[at:end], "little"), end) if end <= len(data) else None
    length = _varint(data, at) if wire == 2 else None
    if length is None or length[0] > len(data) - length[1]:
        return None
    end = length[1] + length[0]
    return data[length[1] : end], end


def _varint(data: bytes, at: int) -> tuple[int, int] | None:
    """A number in groups of seven bits, the lowest first."""
    number = 0
    for count, byte in enumerate(data[at : at + _MAX_VARINT]):
        number |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return (number, at + count + 1) if number < 1 << 64 else None
    return None
