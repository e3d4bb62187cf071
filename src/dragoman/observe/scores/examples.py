"""Examples of mended calls for a report to a provider: their shape, without what users wrote."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, cast

import msgspec

from ...store import ReceiptQuery, Store
from ..receipts import Detail
from ..receipts.detail import CallDetail

_LONGEST = 240
"""Characters of arguments that an example shows."""
_LOOKED_AT = 20
"""Receipts to look at for one example."""
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"?(\s*:)?|\b(?:true|false|null)\b|\w', re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}")
_PATH = re.compile(r"[\w.\[\]-]{0,80}")
_SIGN = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")
_WORDS = frozenset({"true", "false", "null"})


class Example(msgspec.Struct, frozen=True):
    """One call that a rule mended."""

    rule: str
    tool: str
    path: str
    """Where in the arguments, if the rule changed them."""
    reason: str
    before: str
    after: str


async def example(store: Store, target: str, rule: str, since: float, until: float) -> Example | None:
    """The newest call of `target` that `rule` mended. None: no receipt of one is kept."""
    upstream = target.partition("/")[0]
    query = ReceiptQuery(since=since, before=until, upstream=upstream, rule=rule, limit=_LOOKED_AT)
    for row in await store.receipts(query):
        receipt = await store.receipt(row.id)
        if receipt is None:
            continue
        try:
            detail = msgspec.json.decode(receipt.value, type=Detail)
        except msgspec.DecodeError:
            continue
        if not detail.attempts or detail.attempts[-1].target != target:
            continue
        for call in detail.tool_calls:
            if rule in call.rules:
                return _shown(call, rule)
    return None


def _shown(call: CallDetail, rule: str) -> Example:
    fix = next((fix for fix in call.fixes if fix.rule == rule), None)
    known = member_names(call.after)
    return Example(
        rule=rule,
        tool=call.name if call.name == call.upstream_name else f"{call.upstream_name} (for {call.name})",
        path=fix.path if fix is not None and _PATH.fullmatch(fix.path) else "",
        reason="" if fix is None else fix.reason,
        before=masked(call.before, known),
        after=masked(call.after, known),
    )


def masked(arguments: str, known: Collection[str] = ()) -> str:
    """JSON, or something like it, with `x` for each letter and `0` for each digit of its values.

    Names of members stay if they look like names of parameters, and so do signs: they show what the model did
    wrong. In text that is not JSON, names and values look alike, so only `known` names stay.
    """
    names = member_names(arguments) or known

    def mask(found: re.Match[str]) -> str:
        whole = found[0]
        if whole in _WORDS or (found[2] is not None and found[1] in names and _NAME.fullmatch(found[1])):
            return whole
        return _DIGIT.sub("0", _SIGN.sub("x", whole))

    text = _TOKEN.sub(mask, arguments)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def member_names(arguments: str) -> set[str]:
    """The names of all members of all objects; none if this is no JSON."""
    try:
        left: list[Any] = [msgspec.json.decode(arguments)]
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return set()
    names: set[str] = set()
    while left:
        value = left.pop()
        if isinstance(value, dict):
            members = cast(dict[str, Any], value)
            names |= members.keys()
            left += members.values()
        elif isinstance(value, list):
            left += cast(list[Any], value)
    return names
