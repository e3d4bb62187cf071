"""The members of one chunk, collected from the events of one frame of the upstream."""

from __future__ import annotations

from ....model.messages import Extras
from ...common.fields import Obj

# The order in which the members of one delta are meant.
_RANKS = {"role": 0, "content": 2, "refusal": 3, "tool_calls": 4}
_REASONING_RANK = 1
_CALLS = "tool_calls"


class PendingChunk:
    """The members of a chunk that is not written yet. Events of one frame of the upstream share a chunk."""

    __slots__ = ("_rank", "delta", "extras")

    def __init__(self) -> None:
        self.delta: Obj = {}
        self.extras: Extras | None = None
        self._rank = 0

    def takes(self, delta: Obj, extras: Extras | None) -> bool:
        """Can these members join the chunk? Its members are read in the order of `_RANKS`."""
        if extras is not None and self.extras is not None:
            return False
        ranks = [_RANKS.get(name, _REASONING_RANK) for name in delta]
        return all(rank >= self._rank for rank in ranks) and delta.keys().isdisjoint(
            self.delta.keys() - {_CALLS}
        )

    def add(self, delta: Obj, extras: Extras | None) -> None:
        self.extras = self.extras or extras
        for name, value in delta.items():
            self._rank = _RANKS.get(name, _REASONING_RANK)
            if name == _CALLS and _CALLS in self.delta:
                _add_call(self.delta[_CALLS], value[0])
            else:
                self.delta[name] = value


def _add_call(calls: list[Obj], call: Obj) -> None:
    """Add a fragment of a call. The first arguments join the entry that names the call."""
    last = calls[-1]
    kind = "custom" if "custom" in call else "function"
    if "id" in call or last["index"] != call["index"] or kind not in last:
        calls.append(call)
        return
    field = "input" if kind == "custom" else "arguments"
    last[kind] = {**last[kind], field: last[kind].get(field, "") + call[kind][field]}
