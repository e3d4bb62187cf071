"""What reading and writing Chat requests have in common."""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.messages import Raw, Seal
from ...base import Target
from ...common import sealed_reasoning
from ...common.call_ids import ANY, upstream_ids
from ...common.notices import Notices
from ...common.tool_names import NameRule, ToolNames

NAME = "openai-chat"
PATH = "/v1/chat/completions"

# Which characters stand in an id is nobody's business here: Kimi wants its `functions.Bash:0` back, and
# proxies of Gemini hide whole signatures in theirs (protocols.md 40, 42). OpenAI itself has a bound, of
# which reports went from 40 to 64: a fact about that upstream, for its `Target.ids`.
IDS = msgspec.structs.replace(ANY, longest=4096)
NAMES = NameRule(r"[a-zA-Z0-9_-]+", 64, custom=True)


class Writing:
    """What every part of a request's writer needs to know."""

    __slots__ = ("compatible", "id", "names", "notices", "own", "target")

    def __init__(self, target: Target, names: ToolNames, notices: Notices, own: bool) -> None:
        self.target = target
        self.names = names
        self.notices = notices
        self.own = own
        """The request came over Chat itself: what it says is legal, and what is unknown stays."""
        self.compatible = target.chat_compatible and not own
        """Must the writer keep to what servers other than OpenAI's understand?"""
        self.id = upstream_ids(target.ids or IDS)
        """A call's id as the upstream may see it."""

    def reasons(self) -> bool:
        """May the upstream be told how hard to think? Says that it cannot be, if so."""
        if self.target.takes.reasons is not False:
            return True
        self.notices.say("reasoning-dropped", "settings.reasoning", f"{self.target.model} does not reason")
        return False


def is_own(raw: Raw | None) -> bool:
    return raw is not None and raw.protocol == NAME


def goes_back(seal: Seal | None, target: Target) -> bool:
    """May this upstream see the seal, of a thought or of a call?"""
    return sealed_reasoning.goes_back(seal, NAME, target.issuer)


def without(fields: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in keys}
