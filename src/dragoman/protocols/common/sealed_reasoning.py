"""Carry seals (opaque reasoning) through clients of another protocol.

An Anthropic client stores signatures, a Responses client encrypted content, a Gemini client thought
signatures. A seal of the client's own protocol goes into this slot unchanged. A foreign seal goes into the
same slot in an envelope that names its issuer. The next request brings the envelope back, and only the issuer
gets the seal. The envelope is plain base64, because Google's SDK rejects other signatures.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

from ...model.messages import Seal

_MAGIC = b"dragoman1:"
OURS = "ZHJhZ29tYW4x"
"""The first characters of every envelope: the base64 of the first nine bytes of the magic."""
_URL_SAFE = str.maketrans("-_", "+/")


class Envelope(msgspec.Struct, frozen=True, omit_defaults=True, array_like=True):
    """A seal, packed for a client."""

    seal: Seal
    call: str = ""
    """The id of the tool call that the seal belongs to, if the client's slot is not on the call itself."""


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Envelope)


def to_slot(seal: Seal, protocol: str, call: str = "") -> str:
    """The text for the slot of a client that speaks `protocol`."""
    if seal.protocol == protocol and not call:
        return seal.data
    return base64.b64encode(_MAGIC + _encode(Envelope(seal, call))).decode()


def is_base64(data: str) -> bool:
    """Is this valid base64 to a strict decoder, such as Google's SDK?"""
    try:
        base64.b64decode(data.translate(_URL_SAFE), validate=True)
    except ValueError:
        return False
    return True


def from_slot(data: str, protocol: str, id: str | None = None) -> Envelope:
    """Read the seal in a slot of `protocol`: an envelope, or a seal of the protocol itself."""
    if data.startswith(OURS):
        try:
            raw = base64.b64decode(data, validate=True)
            return _decoder.decode(raw[len(_MAGIC) :])
        except (binascii.Error, msgspec.DecodeError):
            pass
    return Envelope(Seal(protocol, data, id))


def goes_back(seal: Seal | None, protocol: str, issuer: str) -> bool:
    """May the upstream `issuer`, which speaks `protocol`, get this seal? Only if it may be the issuer."""
    if seal is None or seal.protocol != protocol:
        return False
    # A signature is bound to the provider, and often to the model that made it. Another provider answers 400
    # to it, and the conversation could not go on. An unknown issuer gets the benefit of the doubt: a client's
    # own seal has none.
    return not seal.issuer or not issuer or seal.issuer == issuer
