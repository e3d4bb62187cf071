"""Writes protobuf messages by hand. It shares no code with the reader in `dragoman.credentials`."""

import base64
import struct

Value = int | float | str | bytes


def varint(number: int) -> bytes:
    """Seven bits per byte, lowest first. All bytes except the last have the high bit set."""
    groups = [number & 127]
    while number := number >> 7:
        groups.append(number & 127)
    return bytes([*(group | 128 for group in groups[:-1]), groups[-1]])


def field(number: int, value: Value) -> bytes:
    """An integer as a varint, a float as eight bytes, other values with their length."""
    if isinstance(value, int):
        return varint(number * 8) + varint(value)
    if isinstance(value, float):
        return varint(number * 8 + 1) + struct.pack("<d", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number * 8 + 2) + varint(len(data)) + data


def fixed32(number: int, value: int) -> bytes:
    return varint(number * 8 + 5) + struct.pack("<I", value)


def message(*fields: tuple[int, Value]) -> bytes:
    return b"".join(field(number, value) for number, value in fields)


def oauth_topic(
    token: str, expires: int | None = None, *, sentinel: str = "oauthTokenInfoSentinelKey"
) -> str:
    """The value of Antigravity's `antigravityUnifiedStateSync.oauthToken`, with other entries beside it."""
    at = [] if expires is None else [(4, message((1, expires), (2, 5)))]
    info = message((1, token), (2, "Bearer"), (3, "1//refresh-hidden"), *at)
    row = message((1, base64.b64encode(info).decode()))
    other = message((1, "otherSentinelKey"), (2, message((1, "bm90aGluZw=="))))
    topic = message((1, other), (1, message((1, sentinel), (2, row))), (1, other))
    return base64.b64encode(topic).decode()
