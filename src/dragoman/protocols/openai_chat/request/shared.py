"""What reading and writing Chat requests have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from ....messages import Raw, Seal
from ... import seals
from ...base import Target
from ...ids import ANY, IdRule
from ...known import Known
from ...names import NameRule, ToolNames
from ...notices import Notices

T = TypeVar("T")

NAME = "openai-chat"
PATH = "/v1/chat/completions"

# Which characters stand in an id is nobody's business here: Kimi wants its `functions.Bash:0` back, and
# proxies of Gemini hide whole signatures in theirs (protocols.md 40, 42). OpenAI itself has a bound, of
# which reports went from 40 to 64: a fact about that upstream, for its `Target.ids`.
IDS = msgspec.structs.replace(ANY, longest=4096)
NAMES = NameRule(r"[a-zA-Z0-9_-]+", 64, custom=True)


class Writing(msgspec.Struct, frozen=True):
    """What every part of a request's writer needs to know."""

    target: Target
    names: ToolNames
    notices: Notices
    own: bool
    """The request came over Chat itself: what it says is legal, and what is unknown stays."""

    @property
    def key(self) -> tuple[Any, ...]:
        """Everything that decides how a message is written."""
        target = self.target
        facts = (target.issuer, target.ids, target.reasoning_field, target.chat_compatible, target.strict)
        return (*facts, self.own, self.names.number)

    def noted(self, known: Known | None, name: str, key: Any, write: Callable[[], T]) -> T:
        """What `write` gives, out of memory if it can be. What has to be said is said every time."""
        if known is None:
            return write()
        said = len(self.notices)

        def written() -> tuple[T, bool]:
            return write(), len(self.notices) == said

        return known.note(f"{NAME} {name}", key, written)

    @property
    def compatible(self) -> bool:
        """Must the writer keep to what servers other than OpenAI's understand?"""
        return self.target.chat_compatible and not self.own

    @property
    def ids(self) -> IdRule:
        return self.target.ids or IDS


def is_own(raw: Raw | None) -> bool:
    return raw is not None and raw.protocol == NAME


def goes_back(seal: Seal | None, target: Target) -> bool:
    """May this upstream see the seal, of a thought or of a call?"""
    return seals.goes_back(seal, NAME, target.issuer)


def without(fields: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in keys}
