"""The name of this protocol, and what goes back unchanged to its own upstreams."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TypeGuard

from ...model.messages import Raw, Seal
from ..base import Target
from ..common import sealed_reasoning
from ..common.call_ids import IdRule
from ..common.fields import Obj

NAME = "openai-responses"
# OpenAI refuses a `call_id` over 64 characters. That limit belongs to OpenAI's `Target.ids`: other servers of
# this protocol send longer ones. No character is known to be forbidden.
IDS = IdRule(r"(?s).+", 4096)


def is_own(raw: Raw | None) -> TypeGuard[Raw]:
    """Was this sent in this protocol? Then the other side may get it unchanged, if it speaks it too."""
    return raw is not None and raw.protocol == NAME


def goes_back(seal: Seal | None, target: Target) -> TypeGuard[Seal]:
    """May this upstream get the seal? Only the upstream that issued a seal can read it.

    A model that does not reason refuses reasoning items, its own ones too.
    """
    return target.takes.reasons is not False and sealed_reasoning.goes_back(seal, NAME, target.issuer)


def call_id_key(kind: str, members: Container[str]) -> str:
    """The name of the member with the call id. OpenAI's first shell tool has it in `id`."""
    return "id" if kind == "local_shell_call_output" and "call_id" not in members else "call_id"


def summary_texts(words: Iterable[str]) -> list[Obj]:
    """The summary of a reasoning item with these texts."""
    return [{"type": "summary_text", "text": text} for text in words]
