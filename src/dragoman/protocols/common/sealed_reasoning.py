"""Carrying opaque reasoning through clients whose own slot is meant for somebody else's.

An Anthropic client has a place for Anthropic's signatures, a Responses client for OpenAI's encrypted
content, a Gemini client for thought signatures. A seal of that very kind goes out as it is. A foreign one
goes into the same slot in an envelope that names its origin, and is taken out again when it comes back,
so that it reaches its issuer and nobody else. The envelope is plain base64, since Gemini's SDK insists.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

from ...model.messages import Seal

_MAGIC = b"dragoman1:"
OURS = "ZHJhZ29tYW4x"
"""How an envelope begins: the magic is longer than the longest base64 tail, so its encoding is fixed."""
_URL_SAFE = str.maketrans("-_", "+/")


class Envelope(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """A seal on its way through a client."""

    seal: Seal
    call: str = ""
    """The tool call this belongs to, where the client's slot is not on the call itself."""


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Envelope)


def to_slot(seal: Seal, protocol: str, call: str = "") -> str:
    """What to write into the slot of a client that speaks `protocol`."""
    if seal.protocol == protocol and not call:
        return seal.data
    return base64.b64encode(_MAGIC + _encode(Envelope(seal, call))).decode()


def is_base64(data: str) -> bool:
    """Would a strict reader, such as Gemini's SDK, take it?"""
    try:
        base64.b64decode(data.translate(_URL_SAFE), validate=True)
    except ValueError:
        return False
    return True


def from_slot(data: str, protocol: str, id: str | None = None) -> Envelope:
    """The seal found in a slot of `protocol`: ours in an envelope, or the protocol's own."""
    if data.startswith(OURS):
        try:
            raw = base64.b64decode(data, validate=True)
            return _decoder.decode(raw[len(_MAGIC) :])
        except (binascii.Error, msgspec.DecodeError):
            pass
    return Envelope(Seal(protocol, data, id))


def goes_back(seal: Seal | None, protocol: str, issuer: str) -> bool:
    """May the upstream `issuer`, which speaks `protocol`, see the seal? Only if it may have made it."""
    if seal is None or seal.protocol != protocol:
        return False
    return not seal.issuer or not issuer or seal.issuer == issuer
