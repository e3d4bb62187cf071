"""What the refusals of targets told about their models, for as long as the process lives.

A name does not always tell what a model takes: it may be a deployment's, or too new. An upstream that refuses
a field says so. Then the field is left out, at once and from then on.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..model.events import Failed, FailureKind
from ..protocols.base import Target
from ..protocols.model_facts import told_by
from .router import Choice

# A client may name models at will.
_MOST_TARGETS = 1024


class LearnedFacts:
    """By the key of the target."""

    def __init__(self) -> None:
        self._learned: dict[str, dict[str, Any]] = {}

    def applied(self, choice: Choice) -> Choice:
        """`choice` with what its target was found not to take."""
        learned = self._learned.get(choice.key) if self._learned else None
        return corrected(choice, learned) if learned else choice

    def remember(self, choice: Choice, told: dict[str, Any]) -> None:
        """Keep what a refusal of this target told."""
        if len(self._learned) >= _MOST_TARGETS:
            self._learned.clear()
        self._learned[choice.key] = {**self._learned.get(choice.key, {}), **told}


def told_anew(failure: Failed, target: Target) -> dict[str, Any]:
    """What `failure` tells about the model of `target` that was not known."""
    if failure.kind is not FailureKind.INVALID_REQUEST:
        return {}
    takes = target.takes
    told = told_by(f"{failure.message} {failure.param or ''}")
    return {name: fact for name, fact in told.items() if getattr(takes, name) != fact}


def corrected(choice: Choice, told: dict[str, Any]) -> Choice:
    """`choice` with what refusals told."""
    known = msgspec.structs.replace(choice.target.takes, **told)
    target = msgspec.structs.replace(choice.target, facts=known)
    return msgspec.structs.replace(choice, target=target)
