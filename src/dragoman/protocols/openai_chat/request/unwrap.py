"""Keep what a Chat message holds beside its neutral parts, so that it can be written anew from them.

Dragoman writes a message of a Chat client anew if it wrapped an id or reasoning in it for the client, or if
the upstream needs other ids. The message and its parts then keep the members of their objects that are not
understood, and those that say the same in another form: null, an empty list, arguments that are an object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ....model.messages import (
    Extras,
    Media,
    Message,
    Opaque,
    Raw,
    Refusal,
    Thinking,
    ToolCall,
    ToolResult,
)
from ...common.typed_json import Members, items, members_of, opens_array, opens_string
from ..own import NAME
from . import reasoning
from .wire import is_nothing

_TURN = frozenset({"content", "name", "refusal", "tool_calls", "function_call"})
_RESULT = frozenset({"tool_call_id", "content"})
_USUAL: tuple[dict[str, Any], ...] = (
    {"type": msgspec.Raw(b'"function"'), "function": {}},
    {"type": msgspec.Raw(b'"custom"'), "custom": {}},
)


class MessageExtras(Extras, frozen=True, gc=False):
    """The unknown members of a Chat message, and its form."""

    listed: bool = False
    """The content is an array."""
    echoed: bool = False
    """Its calls had members that OpenAI's stream helper adds and agents echo. Upstreams refuse them."""


def unwrapped(message: Message, raw: Raw, *, echoed: bool = False) -> Message:
    """`message`, which was read from `raw`, without `raw`. `echoed`: see `MessageExtras`."""
    members = members_of(raw.value, "")
    if message.role == "assistant":
        return _turn(message, members, echoed)
    if "tool_call_id" not in members:
        return message  # the result of a deprecated `function_call`: it has no id
    (result,) = message.parts
    assert isinstance(result, ToolResult)
    content = _items(members, "content")
    parts = tuple(_contents(result.parts, content))
    extras = MessageExtras(NAME, _rest(members, _RESULT), bool(content))
    return Message("user", (msgspec.structs.replace(result, parts=parts),), extras=extras)


def is_legacy(raw: Raw) -> bool:
    """Does a message with a call or a result have the deprecated form?"""
    members = members_of(raw.value, "")
    return "tool_call_id" not in members and is_nothing(members.get("tool_calls"))


def _turn(message: Message, members: Members, echoed: bool) -> Message:
    content, calls = _items(members, "content"), _items(members, "tool_calls")
    thoughts = [part for part in message.parts if isinstance(part, Thinking)]
    said = [part for part in message.parts if not isinstance(part, (Thinking, ToolCall))]
    called = [part for part in message.parts if isinstance(part, ToolCall)]
    rest = _rest(members, _TURN | reasoning.MEMBERS) | reasoning.spelled(members)
    extras = MessageExtras(NAME, rest, bool(content), echoed)
    parts = [*thoughts, *_contents(said, content), *map(_call, called, calls)]
    if len(called) > len(calls):
        # The deprecated form comes after all others.
        legacy = Extras(NAME, {"function_call": members["function_call"]})
        parts.append(msgspec.structs.replace(called[-1], extras=legacy))
    return Message("assistant", tuple(parts), message.name, None, extras)


def _items(members: Members, key: str) -> list[msgspec.Raw]:
    given = members.get(key)
    return items(given, key) if given is not None and opens_array(given) else []


def _rest(members: Members, understood: frozenset[str]) -> dict[str, Any]:
    return {
        key: value
        for key, value in members.items()
        if key != "role" and (key not in understood or is_nothing(value))
    }


def _contents(parts: Sequence[Any], content: list[msgspec.Raw]) -> Iterator[Any]:
    """The parts, each with what it keeps. Those of the content come first, then those of other members."""
    for at, part in enumerate(parts):
        yield _part(part, content[at]) if at < len(content) else part


def _part(part: Any, given: msgspec.Raw) -> Any:
    if isinstance(part, Media):
        return msgspec.structs.replace(part, raw=Raw(NAME, given))
    if isinstance(part, Opaque):
        return part
    refuses = isinstance(part, Refusal)
    understood = ("type", "refusal" if refuses else "text")
    rest = {key: value for key, value in members_of(given, "").items() if key not in understood}
    # A refusal without extras is a member of the message.
    return msgspec.structs.replace(part, extras=Extras(NAME, rest)) if rest or refuses else part


def _call(call: ToolCall, given: msgspec.Raw) -> ToolCall:
    entry = members_of(given, "")
    rest: dict[str, Any] = {k: v for k, v in entry.items() if k not in ("id", "extra_content", "index")}
    key, text = ("custom", "input") if call.kind == "custom" else ("function", "arguments")
    rest[key] = {
        name: value
        for name, value in members_of(entry[key], "").items()
        if name not in ("name", "parsed_arguments") and (name != text or not _is_text(value))
    }
    if "extra_content" in entry:
        rest |= reasoning.without_seal(entry["extra_content"])
    return call if rest in _USUAL else msgspec.structs.replace(call, extras=Extras(NAME, rest))


def _is_text(value: msgspec.Raw) -> bool:
    return opens_string(value) and not is_nothing(value)
