"""A client that asked for no stream gets one body at the end: the upstream's own, if it says the same."""

from __future__ import annotations

from .events import End, Event, Failed
from .passage import Said
from .protocols.base import ClientProtocol, Minted, WireProtocol
from .protocols.collected import collect
from .protocols.plain_answer import PlainAnswer
from .tools.plan import ToolPlan
from .tools.receipts import CallReceipt
from .tools.untouched import untouched
from .wire.frames import Frame, is_utf8


class Body:
    """One answer, put together."""

    __slots__ = ("_came", "_client", "_minted", "_original", "_went")

    def __init__(self, client: ClientProtocol, minted: Minted, *, same: bool) -> None:
        self._client = client
        self._minted = minted
        self._came: list[Event] | None = [] if same else None
        """What the upstream said, as long as its own body may do."""
        self._went: list[Event] = []
        self._original = b""

    def add(self, frame: Frame | None, came: list[Event], went: list[Event], passes: bool) -> bytes:
        """Some of the answer; gives the body when it is over."""
        self._went += went
        if not passes or self._came is None:
            self._came = None
        else:
            self._came += came
            self._original = frame.data if frame is not None else self._original
        match went[-1] if went else None:
            case End():
                if self._came is not None and self._original and _same(self._came, self._went):
                    return self._original
                return self._client.render(collect(self._went), self._minted)
            case Failed() as failed:
                return self._client.error_body(failed, self._minted.id)
            case _:
                return b""


def as_it_is(
    data: bytes, upstream: WireProtocol, plan: ToolPlan, *, usage: bool
) -> tuple[PlainAnswer, list[CallReceipt]] | None:
    """What a whole body says and the receipts of its calls, if a client of the same protocol may have it as
    it is; None if that takes a closer look. `usage`: does the client want the counts in it?"""
    answer = upstream.plain_answer(data) if is_utf8(data) else None
    if answer is None or not (usage or answer.usage is None):
        return None
    receipts = untouched(answer, plan)
    return None if receipts is None else (answer, receipts)


def _same(came: list[Event], went: list[Event]) -> bool:
    """But for the end: whether that tells the truth is for those to say who watch the protocol."""
    came, went = came[:-1], went[:-1]
    if came == went:
        return True
    before, now = Said(), Said()
    before.add(came)
    now.add(went)
    return now.within(before) and now.equals(before)
