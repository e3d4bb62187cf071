"""Input items as a Responses client sent them, and what must be undone before they go upstream.

An item goes back to its own protocol as it came, unknown fields and all, with exceptions of our own
making: a call id that was escaped for the client becomes the upstream's own again, and reasoning of
other upstreams is taken out: a foreign seal that rode in the item's slot is gibberish to this one.
"""

from __future__ import annotations

import re
from typing import Any

from ....messages import Seal
from ...base import Target
from ...fields import Obj, is_object
from ...ids import IdRule, for_upstream, from_client
from ...seals import Envelope, from_slot, goes_back
from ..items import NAME

# OpenAI itself refuses ids over 64 characters, but then it issues none: that is a fact about the upstream,
# for its `Target.ids`. Nothing is known of a forbidden character.
IDS = IdRule(r"(?s).+", 4096)
# OpenAI's own ids have one underscore.
_MADE_UP = re.compile(r"rs_[A-Za-z0-9]+_\d+")


def envelope(item: Obj) -> Envelope | None:
    """What a reasoning item carries for us, if its slot holds one of our envelopes."""
    data = item.get("encrypted_content")
    if item.get("type") != "reasoning" or not isinstance(data, str):
        return None
    found = from_slot(data, NAME)
    return None if found.seal.data == data else found


def returnable(seal: Seal | None, target: Target) -> bool:
    """May `seal` go to this upstream?"""
    return goes_back(seal, NAME, target.issuer)


def restored(item: Any, target: Target) -> Any:
    """`item` as the upstream may see it; None where nothing of it is meant for this upstream."""
    if not is_object(item):
        return item
    ours = envelope(item)
    if ours is not None:
        return _unwrapped(item, ours.seal) if returnable(ours.seal, target) else None
    if _is_made_up(item):
        return None
    # `local_shell_call_output` names the call it answers by its `id`.
    key = "id" if item.get("type") == "local_shell_call_output" and "call_id" not in item else "call_id"
    id = item.get(key)
    if isinstance(id, str) and from_client(id) != id:
        return {**item, key: for_upstream(from_client(id), target.ids or IDS)}
    return item


def _is_made_up(item: Obj) -> bool:
    """Thoughts of a model that seals none, in an item our encoder named: the upstream never heard of it."""
    if item.get("type") != "reasoning" or item.get("encrypted_content"):
        return False
    return _MADE_UP.fullmatch(str(item.get("id"))) is not None


def restored_all(items: list[Any], target: Target) -> list[Any]:
    """All of `items`, each as the upstream may see it."""
    return [kept for item in items if (kept := restored(item, target)) is not None]


def _unwrapped(item: Obj, seal: Seal) -> Obj:
    rest = {key: value for key, value in item.items() if key != "id"}
    head = {"id": seal.id} if seal.id else {}
    return {**head, **rest, "encrypted_content": seal.data}
