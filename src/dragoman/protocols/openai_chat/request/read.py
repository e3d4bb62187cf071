"""An OpenAI Chat client's request to the neutral one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ....messages import Message, Raw, Request
from ...fields import Obj, array, as_object, boolean, need_string, parse_object, reject
from ...history import History
from ...memory import MEMORY
from ...pieces import Body
from ...recall import Way, recalled
from .read_messages import read_message
from .read_pairs import Conversation, is_paired
from .read_plain import read_history, read_list
from .read_settings import read_extras, read_settings, read_usage_wish
from .read_tools import read_tools
from .shared import NAME


def read_request(body: Body, path: str = "") -> Request:
    """`path` says nothing that the body of a Chat request does not."""
    return recalled(body, path, _WAY) or read_fields(parse_object(body))


def read_fields(fields: Obj) -> Request:
    """The members of a Chat body."""
    return _request(fields, _messages(fields))


def _gone_on(before: Request, fields: Obj, history: History, path: str) -> Request:
    return msgspec.structs.replace(before, messages=history, raw=Raw(NAME, fields))


_WAY = Way(
    name="messages",
    read_list=read_list,
    leading=lambda _: (),
    history=read_history,
    request=lambda fields, history, _: _request(fields, history),
    gone_on=_gone_on,
)


def _request(fields: Obj, messages: Sequence[Message]) -> Request:
    model = need_string(fields, "model", "")
    tools = read_tools(fields)
    stream = bool(boolean(fields, "stream", ""))
    return Request(
        model=model,
        messages=messages,
        tools=tools,
        settings=read_settings(fields, tools),
        stream=stream,
        include_usage=read_usage_wish(fields, stream),
        extras=read_extras(fields),
        raw=Raw(NAME, fields),
    )


def _messages(fields: Obj) -> tuple[Message, ...]:
    if fields.get("messages") is None:
        reject("is required", "messages")
    conversation: Conversation | None = None
    messages: list[Message] = []
    for index, given in enumerate(array(fields, "messages", "")):
        where = f"messages[{index}]"
        message = _message(given, where)
        if is_paired(message):
            conversation = conversation or Conversation()
            message = conversation.add(message, where)
        messages.append(message)
    if not messages:
        reject("must not be empty", "messages")
    return tuple(messages)


def _message(given: Any, where: str) -> Message:
    known = MEMORY.known(given)
    if known is None:
        return read_message(as_object(given, where), where)
    return known.once(NAME, lambda: read_message(as_object(given, where), where))
