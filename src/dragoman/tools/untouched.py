"""Whole answers that need nothing done: judged by the same filters and checks that would else do it."""

from __future__ import annotations

from collections.abc import Sequence

from ..events import Stop
from ..messages import Tool
from ..protocols import ids
from ..protocols.plain_answer import PlainAnswer, PlainCall
from .arguments import assemble
from .callnames import schema_of
from .leaks import is_unmarked
from .plan import ToolPlan
from .prose import text_flow
from .receipts import CallReceipt
from .thinktags import is_untagged


def untouched(answer: PlainAnswer, plan: ToolPlan) -> list[CallReceipt] | None:
    """The receipts of an answer's calls, if all of it goes to the client as it is; None if it may not."""
    calls = answer.calls
    if not (calls or answer.text) or (answer.stop is Stop.TOOL) != bool(calls):
        return None
    if answer.text and not _is_only_text(answer.text, plan):
        return None
    if len(calls) > 1 and _alike(calls):
        return None
    now = plan.clock() if plan.clock is not None and calls else None
    receipts: list[CallReceipt] = []
    for call in calls:
        if not _is_right(call, plan):
            return None
        receipts.append(_receipt(call, now))
    return receipts


def _is_only_text(text: str, plan: ToolPlan) -> bool:
    """Of most texts a glance tells that there is nothing in them; of the others those who will look."""
    if not plan.stop and is_untagged(text) and is_unmarked(text):
        return True
    flow = text_flow(plan)
    pieces = flow.feed(text) + flow.flush()
    return all(isinstance(piece, str) for piece in pieces) and "".join(map(str, pieces)) == text


def _alike(calls: Sequence[PlainCall]) -> bool:
    """May one of them be another one again, or share its id?"""
    said = {(call.name, "".join(call.arguments.split())) for call in calls}
    return len(said) < len(calls) or len({call.id for call in calls}) < len(calls)


def _is_right(call: PlainCall, plan: ToolPlan) -> bool:
    called = plan.names.called(call.name)
    if called is None or not _goes_by(called.tool, call.name) or ids.for_client(call.id, plan.ids) != call.id:
        return False
    engine = assemble("live", call.name, schema_of(called, plan.names), plan.rules)
    if engine.feed(call.arguments) != call.arguments:
        return False
    outcome = engine.finish(ended=True)
    return outcome.complete and not (outcome.rest or outcome.fixes or outcome.problems)


def _goes_by(tool: Tool, name: str) -> bool:
    """Is the upstream's name all there is to say of the client's tool?"""
    if tool.name != name or tool.namespace is not None or tool.kind != "function":
        return False
    return not tool.extras or tool.extras.get("builtin") is None


def _receipt(call: PlainCall, now: float | None) -> CallReceipt:
    return CallReceipt(
        id=call.id,
        name=call.name,
        upstream_id=call.id,
        upstream_name=call.name,
        received=call.arguments,
        sent=call.arguments,
        complete=True,
        started=now,
        ended=now,
        fragments=1,
    )
