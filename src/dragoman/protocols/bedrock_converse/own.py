"""The name of this protocol, and the reasoning that goes back to its upstreams."""

from __future__ import annotations

from typing import TypeGuard

from ...model.messages import Seal
from ..base import Target
from ..common import sealed_reasoning

NAME = "bedrock-converse"


def goes_back(seal: Seal | None, target: Target) -> TypeGuard[Seal]:
    """May this upstream get the seal? Only the upstream that issued a seal can read it."""
    return sealed_reasoning.goes_back(seal, NAME, target.issuer)
