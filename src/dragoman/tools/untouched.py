"""Whole answers that need nothing done: judged by the same filters and checks that would else do it."""

from __future__ import annotations

from collections.abc import Sequence

from ..events import Stop
from ..messages import Tool
from ..protocols import ids
from ..protocols.plain_answer import PlainAnswer, PlainCall
from .arguments import assemble
from .arguments.plain import plain_value
from .callnames import schema_of
from .leaks import is_unmarked
from .plan import ToolPlan
from .receipts import CallReceipt
from .textflow import TextFlow
from .thinktags import is_untagged

_TOOL = Stop.TOOL


def untouched(answer: PlainAnswer, plan: ToolPlan) -> list[CallReceipt] | None:
    """The receipts of an answer's calls, if all of it goes to the client as it is; None if it may not."""
    text, calls = answer.text, answer.calls
    if not (calls or text) or (answer.stop is _TOOL) != bool(calls):
        return None
    if text and not _is_only_text(text, plan):
        return None
    if not calls:
        return []
    if len(calls) > 1 and _alike(calls):
        return None
    for call in calls:
        if not _is_right(call, plan):
            return None
    now = None if plan.clock is None else plan.clock()
    return [_receipt(call, now) for call in calls]


def _is_only_text(text: str, plan: ToolPlan) -> bool:
    """Of most texts a glance tells that there is nothing in them; of the others those who will look."""
    if not plan.stop and is_untagged(text) and is_unmarked(text):
        return True
    flow = TextFlow(plan)
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
    schema = schema_of(called, plan.names)
    if plain_value(call.arguments, schema) is not None:
        return True
    engine = assemble("live", call.name, schema, plan.rules)
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
