"""Write the reasoning settings for Anthropic: `thinking` (a budget, or adaptive) and an effort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ....model.messages import Reasoning
from ...base import Target
from ...common import reasoning_effort
from ...common.fields import Obj, is_array, is_object
from ...common.notices import Notices
from ...common.typed_json import items

_PATH = "settings.reasoning"
# Anthropic refuses a smaller budget, and a budget that is not below `max_tokens`.
_MIN_BUDGET = 1024


def write_thinking(
    wanted: Reasoning | None, target: Target, max_tokens: int, notices: Notices
) -> tuple[Obj | None, str | None]:
    """Write `thinking` and `output_config.effort`. Each of them may be None."""
    if wanted is None:
        return None, None
    if reasoning_effort.effort(wanted) == "none":
        return _off(target, notices), None
    takes = target.takes
    asked = bool(wanted.enabled or wanted.adaptive or wanted.budget or wanted.effort)
    if asked and takes.reasons is False:
        notices.warn("reasoning-dropped", _PATH, f"{target.model} does not think")
        return None, None
    # Older Claude models know only budgets. Newer ones (from Opus 4.7 on) refuse a budget with a 400 and want
    # adaptive thinking with an effort. `models.toml` says which model takes which.
    if takes.thinking_effort is False:
        return (_with_budget(wanted, max_tokens, notices) if asked else None), None
    if wanted.budget and takes.thinking_budget is not False:
        return _with_budget(wanted, max_tokens, notices), _effort(wanted, target, notices)
    thinking = _shown({"type": "adaptive"}, wanted) if asked else None
    return thinking, _effort(wanted, target, notices)


def unchanged_thinking(wanted: Reasoning | None) -> tuple[Obj | None, str | None]:
    """The same for an Anthropic client: in this protocol, an effort alone does not switch thinking on.

    In the others it does, so `write_thinking` may add `adaptive`.
    """
    if wanted is None:
        return None, None
    if wanted.budget is not None:
        return _shown({"type": "enabled", "budget_tokens": wanted.budget}, wanted), wanted.effort
    kinds: dict[bool | None, Obj | None] = {
        True: _shown({"type": "adaptive"}, wanted),
        False: {"type": "disabled"},
    }
    return kinds.get(wanted.enabled), wanted.effort


def _off(target: Target, notices: Notices) -> Obj | None:
    if target.takes.reasons is False:
        return None
    if target.takes.always_reasons:
        notices.warn("effort-raised", _PATH, f"{target.model} cannot stop thinking")
        return None
    return {"type": "disabled"}


def _effort(wanted: Reasoning, target: Target, notices: Notices) -> str | None:
    effort = reasoning_effort.effort(wanted)
    if effort == "minimal":
        notices.warn("effort-raised", _PATH, "Anthropic's lowest effort is low")
        return "low"
    return reasoning_effort.fitting(effort, target.takes, target.model, notices)


def fitted(body: Obj, wanted: Reasoning | None, target: Target, notices: Notices) -> Obj:
    """An Anthropic client's `body`, with reasoning settings that the target's model takes.

    A route may send the request to another model than the client has in mind.
    """
    thinking, takes = body.get("thinking"), target.takes
    kind = thinking.get("type") if is_object(thinking) else None
    off = kind in (None, "disabled")
    unfit = (
        (takes.reasons is False and not off)
        or (takes.always_reasons and kind == "disabled")
        or (takes.thinking_budget is False and kind == "enabled")
        or (takes.thinking_effort is False and kind == "adaptive")
    )
    if unfit:
        changed, effort = write_thinking(wanted, target, body.get("max_tokens") or 0, notices)
        return _with_effort(_replaced(body, "thinking", changed), effort)
    given = body.get("output_config")
    effort = given.get("effort") if is_object(given) else None
    if effort is None:
        return body
    if takes.reasons is False or (takes.thinking_effort is False and not takes.efforts):
        notices.warn("reasoning-dropped", _PATH, f"{target.model} takes no effort")
        return _with_effort(body, None)
    return _with_effort(body, reasoning_effort.fitting(effort, takes, target.model, notices))


def _with_effort(body: Obj, effort: str | None) -> Obj:
    given = body.get("output_config")
    config: Obj = given if is_object(given) else {}
    return _replaced(body, "output_config", _replaced(config, "effort", effort) or None)


def _replaced(fields: Obj, key: str, value: Any) -> Obj:
    rest = {name: one for name, one in fields.items() if name != key}
    if value is None:
        return rest
    return {**fields, key: value}


def _with_budget(wanted: Reasoning, max_tokens: int, notices: Notices) -> Obj | None:
    """Write a budget. It counts toward `max_tokens`: one from an effort leaves half for the answer."""
    budget = wanted.budget or min(reasoning_effort.BUDGETS[wanted.effort or "medium"], max_tokens // 2)
    bounded = max(_MIN_BUDGET, min(budget, max_tokens - 1))
    if bounded >= max_tokens:
        message = f"thinking takes {_MIN_BUDGET} tokens or more, and max_tokens is {max_tokens}"
        notices.warn("reasoning-dropped", _PATH, message)
        return None
    if wanted.budget and bounded != wanted.budget:
        rule = "effort-lowered" if bounded < wanted.budget else "effort-raised"
        notices.warn(rule, _PATH, f"the thinking budget can only be {bounded}")
    return _shown({"type": "enabled", "budget_tokens": bounded}, wanted)


def _shown(thinking: Obj, wanted: Reasoning) -> Obj:
    if wanted.show is not None:
        thinking["display"] = "summarized" if wanted.show else "omitted"
    return thinking


def think_if_signed(
    thinking: Obj | None, messages: Sequence[Any] | msgspec.Raw, notices: Notices
) -> Obj | None:
    """`thinking`, unless the current turn has calls without the thoughts before them.

    With a budget, Anthropic refuses such a turn: the last assistant turn must start with a thinking block.
    It occurs if another model made the calls: its thoughts cannot be sent. Adaptive thinking accepts it.
    """
    if thinking is None or thinking.get("type") != "enabled" or _begins_signed(messages):
        return thinking
    message = "the current turn has calls without the reasoning of this model"
    notices.warn("reasoning-dropped", _PATH, message)
    return {"type": "disabled"}


def _begins_signed(messages: Sequence[Any] | msgspec.Raw) -> bool:
    listed = items(messages, "messages") if isinstance(messages, msgspec.Raw) else messages
    given = (msgspec.json.decode(msgspec.json.encode(message)) for message in reversed(listed))
    last = next((m for m in given if m.get("role") == "assistant"), None)
    content = last.get("content") if last else None
    blocks = [b for b in content if is_object(b)] if is_array(content) else []
    types = [block.get("type") for block in blocks]
    return "tool_use" not in types or types[0] in ("thinking", "redacted_thinking")
