"""The name of this protocol, and what goes back unchanged to its own upstreams."""

from __future__ import annotations

from typing import TypeGuard

from ...model.messages import Raw, Seal
from ..base import Target
from ..common import sealed_reasoning

NAME = "openai-chat"


def is_own(raw: Raw | None) -> TypeGuard[Raw]:
    """Was this sent in this protocol? Then the other side may get it unchanged, if it speaks it too."""
    return raw is not None and raw.protocol == NAME


def goes_back(seal: Seal | None, target: Target) -> TypeGuard[Seal]:
    """May this upstream get the seal? Only the upstream that issued a seal can read it."""
    return sealed_reasoning.goes_back(seal, NAME, target.issuer)
