"""Compaction items that Dragoman writes for upstreams without compaction.

Codex asks its provider to compact a conversation that becomes too long (`compaction_trigger`). Later it sends
the `compaction` item instead of the old turns. OpenAI encrypts the item. Dragoman's item holds a summary that
the upstream's model wrote, as base64. It needs no encryption, because the client has the whole conversation
anyway.
"""

from __future__ import annotations

import base64
import binascii

from ...model.messages import Opaque, Raw
from ..common.fields import Obj, is_array, is_object
from .own import NAME

ITEM = "compaction"
TRIGGER = "compaction_trigger"

_MAGIC = b"dragoman-summary1:"
_PREAMBLE = "Summary of the conversation so far, which replaces its earlier turns:\n\n"


def compaction_part(summary: str, seed: str) -> Opaque:
    """The output item with `summary`."""
    data = base64.b64encode(_MAGIC + summary.encode()).decode()
    return Opaque(Raw(NAME, {"id": f"cmp_{seed}", "type": ITEM, "encrypted_content": data}), ITEM)


def summary_of(encrypted: object) -> str | None:
    """The summary in `encrypted_content`, as text for a model. None: another provider made the item."""
    if not isinstance(encrypted, str):
        return None
    try:
        data = base64.b64decode(encrypted, validate=True)
    except (binascii.Error, ValueError):
        return None
    if not data.startswith(_MAGIC):
        return None
    return _PREAMBLE + data[len(_MAGIC) :].decode("utf-8", "replace")


def compaction_request(body: Obj) -> Obj:
    """Turn a compaction request into an ordinary request: the same conversation with a trigger at the end."""
    given = body.get("input")
    if given is None:
        items = []
    else:
        items = given if is_array(given) else [{"type": "message", "role": "user", "content": given}]
    return {**body, "input": [*items, {"type": TRIGGER}], "stream": False, "store": False}


def compaction_answer(body: Obj, response: Obj) -> Obj:
    """The compacted conversation: the user's messages unchanged, then the compaction item."""
    id = str(response.get("id", "")).removeprefix("resp_")
    made = [item for item in response.get("output") or () if item.get("type") == ITEM]
    return {
        "id": f"resp_{id}",
        "object": "response.compaction",
        "created_at": response.get("created_at"),
        "output": [*_user_messages(body, id), *made],
        "usage": response.get("usage") or NO_USAGE,
    }


# The Open Responses specification requires `usage`, also if the upstream sent no counts.
NO_USAGE: Obj = {
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}


def _user_messages(body: Obj, seed: str) -> list[Obj]:
    given = body.get("input")
    items = given if is_array(given) else [{"role": "user", "content": given}] if given else []
    from_user = [item for item in items if is_object(item) and item.get("role") == "user"]
    return [
        {
            "id": f"msg_{seed}_{number}",
            "type": "message",
            "status": "completed",
            "role": "user",
            "content": _content(item.get("content")),
        }
        for number, item in enumerate(from_user)
    ]


def _content(content: object) -> object:
    return [{"type": "input_text", "text": content}] if isinstance(content, str) else content
