"""The name of this protocol, and what goes back unchanged to its own upstreams."""

from __future__ import annotations

from typing import TypeGuard, TypeVar

from ...model.messages import Extras, Message, Raw, Seal
from ..base import Target
from ..common import sealed_reasoning

NAME = "gemini"
Kept = TypeVar("Kept", Raw, Extras)


def is_own(kept: Kept | None) -> TypeGuard[Kept]:
    """Was this sent in this protocol? Then the other side may get it unchanged, if it speaks it too."""
    return kept is not None and kept.protocol == NAME


def is_own_message(message: Message) -> bool:
    """Did a Gemini client send this message? Nothing of it may change except what Dragoman put there."""
    return is_own(message.raw) or is_own(message.extras)


def goes_back(seal: Seal | None, target: Target) -> TypeGuard[Seal]:
    """May this upstream get the seal? Only the upstream that issued a seal can read it."""
    return sealed_reasoning.goes_back(seal, NAME, target.issuer)
