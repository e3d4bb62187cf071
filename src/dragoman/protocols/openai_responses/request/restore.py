"""Pass a Responses client's items to a Responses upstream, without the values that Dragoman put there.

An item stays as it is, with all unknown members. Two values are replaced: an escaped call id becomes the
upstream's own id again, and a wrapped seal is unwrapped for its issuer. Reasoning of another issuer is
removed: this upstream cannot decrypt it, and refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any

import msgspec

from ....model.messages import Raw, Seal
from ...base import Target
from ...common.call_ids import IdRule, for_upstream, from_client
from ...common.fields import Obj, is_object
from ...common.sealed_reasoning import from_slot
from ...common.typed_json import items, opens_array
from .. import compaction, searches
from ..own import NAME, goes_back

# OpenAI refuses a `call_id` over 64 characters. That limit belongs to OpenAI's `Target.ids`: other servers of
# this protocol send longer ones. No character is known to be forbidden.
IDS = IdRule(r"(?s).+", 4096)
# `ItemIds.mint` makes ids of this form. OpenAI's own ids have one underscore.
_MADE_UP = re.compile(r"rs_[A-Za-z0-9]+_\d+")


def is_made_up(id: Any) -> bool:
    """Did Dragoman's encoder make this id of a reasoning item? The upstream does not know it."""
    return isinstance(id, str) and _MADE_UP.fullmatch(id) is not None


def call_id_key(kind: Any, members: Container[str]) -> str:
    """The name of the member with the call id. OpenAI's first shell tool has it in `id`."""
    return "id" if kind == "local_shell_call_output" and "call_id" not in members else "call_id"


def without_reasoning(given: list[Any] | msgspec.Raw) -> list[Any] | msgspec.Raw:
    """Remove the reasoning items from an `input`, for a model that refuses them."""
    if isinstance(given, msgspec.Raw) and not opens_array(given):
        return given
    listed = items(given, "input") if isinstance(given, msgspec.Raw) else given
    kept = [item for item in listed if not _is_reasoning(item)]
    return given if len(kept) == len(listed) else kept


def _is_reasoning(item: Any) -> bool:
    given = msgspec.json.decode(item) if isinstance(item, msgspec.Raw) else item
    return is_object(given) and given.get("type") == "reasoning"


def restored_input(given: msgspec.Raw, target: Target) -> list[Any]:
    """All items of an `input`, without Dragoman's values."""
    kept: list[Any] = []
    for item in items(given, "input"):
        raw = Raw(NAME, item, wrapped=True)
        kept += searches.as_items(raw.parsed) or [restored(raw, target)]
    return [item for item in kept if item is not None]


def restored(raw: Raw, target: Target) -> Any:
    """One item without Dragoman's values; None if this upstream must not get any of it."""
    if not raw.wrapped:
        return raw.value
    item: Obj = raw.parsed
    match item.get("type"):
        case "reasoning":
            restored = _reasoning(item, target)
        case compaction.ITEM:
            restored = compaction.as_message(item)
        case _:
            restored = _with_id(item, target)
    return raw.value if restored is item else restored


def _reasoning(item: Obj, target: Target) -> Obj | None:
    data = item.get("encrypted_content")
    if not data:
        # Visible reasoning of a model without encrypted content. With an id of Dragoman, it is not OpenAI's.
        return None if is_made_up(item.get("id")) else item
    seal = from_slot(data, NAME).seal
    if seal.data == data:
        return item
    return _unwrapped(item, seal) if goes_back(seal, target) else None


def _unwrapped(item: Obj, seal: Seal) -> Obj:
    rest = {key: value for key, value in item.items() if key != "id"}
    head = {"id": seal.id} if seal.id else {}
    return {**head, **rest, "encrypted_content": seal.data}


def _with_id(item: Obj, target: Target) -> Obj:
    key = call_id_key(item.get("type"), item)
    id = item.get(key)
    if isinstance(id, str) and from_client(id) != id:
        return {**item, key: for_upstream(from_client(id), target.ids or IDS)}
    return item
