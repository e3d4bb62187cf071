"""Facts that the reader and the writer of Chat requests share."""

from __future__ import annotations

import msgspec

from ....model.messages import Extras
from ...base import Target
from ...common.call_ids import ANY, upstream_ids
from ...common.fields import Obj
from ...common.notices import Notices
from ...common.tool_names import NameRule, ToolNames
from ..own import NAME

PATH = "/v1/chat/completions"

# Any character is allowed in an id: Kimi needs its `functions.Bash:0` back, and proxies of Gemini put whole
# signatures into ids. OpenAI's own limit (64 characters) and Mistral's (exactly 9) belong to `Target.ids`.
IDS = msgspec.structs.replace(ANY, max_length=4096)
NAMES = NameRule(r"[a-zA-Z0-9_-]+", 64, custom=True)


class Writing:
    """The context that all parts of the writer share."""

    __slots__ = ("compatible", "id", "keeps_ids", "keeps_legacy", "names", "notices", "own", "target")

    def __init__(
        self, target: Target, names: ToolNames, notices: Notices, own: bool, *, keeps_legacy: bool
    ) -> None:
        self.target = target
        self.names = names
        self.notices = notices
        self.own = own
        """A Chat client sent the request, so its content is legal, and unknown members stay."""
        self.keeps_legacy = keeps_legacy
        """The deprecated functions, and their calls and results, stay in their own form."""
        self.compatible = target.chat_compatible and not own
        """Must the writer avoid members that only OpenAI's own servers support?"""
        self.keeps_ids = own and (target.ids is None or target.ids.free)
        """The ids stay as they are: the upstream or the client chose them."""
        self.id = _unchanged if self.keeps_ids else upstream_ids(target.ids or IDS)
        """Makes a call id legal for the upstream."""

    def kept(self, extras: Extras | None) -> Obj | None:
        """The unknown members of an object, if a Chat client's request is written; else None."""
        return extras.members if self.own and extras is not None and extras.protocol == NAME else None

    def reasons(self) -> bool:
        """Does the model take a reasoning effort? Adds a notice if it does not."""
        if self.target.takes.reasons is not False:
            return True
        self.notices.warn("reasoning-dropped", "settings.reasoning", f"{self.target.model} does not reason")
        return False


def _unchanged(id: str) -> str:
    return id
