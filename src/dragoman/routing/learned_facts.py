"""Facts about models that Dragoman learns from error messages of upstreams. They last until the process ends.

A model's name does not always show what the model supports: it may be the name of an Azure deployment, or too
new. If an upstream refuses a field, its error message says so. Then Dragoman retries without the field, and
leaves it out from then on.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..model.events import Failed, FailureKind
from ..protocols.base import Target
from ..protocols.model_facts import facts_in_refusal
from .router import ChosenTarget

# Clients may invent model names. This bounds the memory that they can use.
_MAX_TARGETS = 1024


class LearnedFacts:
    """The learned facts of each target."""

    def __init__(self) -> None:
        self._learned: dict[str, dict[str, Any]] = {}

    def applied(self, choice: ChosenTarget) -> ChosenTarget:
        """`choice` with the learned facts of its target."""
        learned = self._learned.get(choice.key) if self._learned else None
        return corrected(choice, learned) if learned else choice

    def remember(self, choice: ChosenTarget, facts: dict[str, Any]) -> None:
        """Store new facts about this target."""
        if len(self._learned) >= _MAX_TARGETS:
            self._learned.clear()
        self._learned[choice.key] = {**self._learned.get(choice.key, {}), **facts}


def new_facts(failure: Failed, target: Target) -> dict[str, Any]:
    """The facts in the message of `failure` that Dragoman did not know about the model of `target`."""
    if failure.kind is not FailureKind.INVALID_REQUEST:
        return {}
    takes = target.takes
    found = facts_in_refusal(f"{failure.message} {failure.param or ''}")
    if "refused_betas" in found:  # a message names only those of its request
        found["refused_betas"] = tuple(sorted({*takes.refused_betas, *found["refused_betas"]}))
    return {name: fact for name, fact in found.items() if getattr(takes, name) != fact}


def corrected(choice: ChosenTarget, facts: dict[str, Any]) -> ChosenTarget:
    """`choice` with these facts about its model."""
    known = msgspec.structs.replace(choice.target.takes, **facts)
    target = msgspec.structs.replace(choice.target, facts=known)
    return msgspec.structs.replace(choice, target=target)
