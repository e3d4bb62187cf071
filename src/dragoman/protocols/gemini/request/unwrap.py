"""Keep the members of a content whose call ids or seals Dragoman wrapped for the client.

Such a content cannot go to an upstream as it came. Its message has no `raw`, and the writer builds it from
the parts. So each part holds what the client wrote beside its neutral values: `raw` of a call or a response
is the whole part, without the seal and with the upstream's own id; `extras` are the unknown members. A
`Thinking` with `extras` is a part of its own, not the signature of the part before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ....model.messages import (
    Extras,
    Media,
    Message,
    Opaque,
    Part,
    Raw,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from ...common.fields import Obj
from ...common.typed_json import Members, members_of
from ..own import NAME
from .keys import SIGNATURES

_ABSENT = (None, msgspec.Raw(b"null"), msgspec.Raw(b'""'))
_OF_CALLS = frozenset({"id", "name", "args"})
_OF_RESPONSES = frozenset({"id", "name", "response", "parts"})


def unwrapped(role: Role, pieces: Iterable[tuple[Sequence[Part], msgspec.Raw]], content: Members) -> Message:
    """The message of a content. `pieces`: what was read of each of its parts, and the part as it came."""
    parts = [part for read, raw in pieces for part in _with_members(read, members_of(raw, ""))]
    # A client may leave out the role, or call it `function`.
    rest = {key: value for key, value in content.items() if key != "parts"}
    return Message(role, tuple(parts), extras=Extras(NAME, rest))


def _with_members(read: Sequence[Part], given: Members) -> Sequence[Part]:
    """`read`, with the members of the part `given`."""
    members: Obj = dict(given)
    if any(isinstance(part, (Thinking, ToolCall)) and part.seal is not None for part in read):
        members = {key: value for key, value in given.items() if key not in SIGNATURES}
        if SIGNATURES[0] not in given:
            members[SIGNATURES[1]] = None  # the writer puts the seal here
    match read:
        case (ToolCall() as call,):
            raw, extras = _nested(members, ("functionCall", "function_call"), _OF_CALLS, call.id)
            return (msgspec.structs.replace(call, raw=raw, extras=extras),)
        case (ToolResult() as result, *late):
            names = ("functionResponse", "function_response")
            raw, extras = _nested(members, names, _OF_RESPONSES, result.call_id)
            return (msgspec.structs.replace(result, raw=raw, extras=extras), *late)
        case (Media() | Opaque() as other, *late):
            return (msgspec.structs.replace(other, raw=Raw(NAME, members)), *late)
        case (Text(text), *late) if text or not late:
            return (Text(text, extras=_without(members, "text")), *late)
        # The client keeps nothing but a seal in this part. The part goes where the seal goes.
        case (*_, Thinking(text, seal)):
            extras = _without(members, "text") if text else Extras(NAME, members)
            return (Thinking(text, seal, extras),)
        case _:
            return (Thinking("", None, Extras(NAME, members)),)


def _nested(members: Obj, names: tuple[str, str], known: frozenset[str], id: str) -> tuple[Raw, Extras]:
    """A call or a response as the client wrote it, with the id `id`; and its unknown members."""
    name = next(name for name in names if members.get(name) not in _ABSENT)
    inner: dict[str, Any] = members_of(members[name], name)
    if inner.get("id") not in _ABSENT:
        inner["id"] = id
    rest = {key: value for key, value in inner.items() if key not in known}
    unknown = {key: value for key, value in members.items() if key != name}
    # Also without unknown members: the writer has to know this spelling.
    nested = {name: rest} if rest or name == names[1] else {}
    return Raw(NAME, members | {name: inner}), Extras(NAME, unknown | nested)


def _without(members: Obj, name: str) -> Extras:
    return Extras(NAME, {key: value for key, value in members.items() if key != name})
