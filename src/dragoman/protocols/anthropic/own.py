"""The name of this protocol, and what goes back unchanged to its own upstreams."""

from __future__ import annotations

from typing import TypeGuard

import msgspec

from ...model.messages import Message, Raw, Seal
from ..base import Target
from ..common import sealed_reasoning
from ..common.fields import Obj, is_object
from ..common.typed_json import members_of

NAME = "anthropic"


def is_own(raw: Raw | None) -> TypeGuard[Raw]:
    """Was this sent in this protocol? Then the other side may get it unchanged, if it speaks it too."""
    return raw is not None and raw.protocol == NAME


def is_clients(message: Message) -> bool:
    """Is this a message of a client of this protocol, as it came or unwrapped?"""
    return is_own(message.raw) or (message.extras is not None and message.extras.protocol == NAME)


def members(raw: Raw) -> Obj:
    """The members of an object that was sent in this protocol, spelled as they came."""
    value = raw.value
    return dict(value) if is_object(value) else {**members_of(value, "")}


def goes_back(seal: Seal | None, target: Target) -> TypeGuard[Seal]:
    """May this upstream get the seal? Only the upstream that issued a seal can read it."""
    return sealed_reasoning.goes_back(seal, NAME, target.issuer)


def with_input(block: Obj, given: str) -> Obj:
    """A block with the input that arrived in deltas. One that was cut off is left out."""
    try:
        msgspec.json.decode(given)
    except (ValueError, RecursionError):
        return block
    return {**block, "input": msgspec.Raw(given.encode())}
