"""Read the request of an OpenAI Chat client."""

from __future__ import annotations

from ....model.messages import Message, Raw, Request
from ...common.fields import Body, Obj, boolean, need_string, reject
from ...common.typed_json import LazyArray, body_members, decode_members, reads_body
from ..own import NAME
from .read_messages import decode_messages, read_decoded
from .read_pairs import ChatPairing
from .read_settings import read_extras, read_settings, wants_usage
from .read_tools import read_tools

_UNDECODED = frozenset({"messages", "tools", "functions", "web_search_options"})


@reads_body
def read_request(body: Body, path: str = "") -> Request:
    """Read a Chat request. `path` is not used: the body has everything."""
    members = body_members(body)
    fields = decode_members(members, _UNDECODED)
    model = need_string(fields, "model", "")
    tools = read_tools(fields)
    stream = bool(boolean(fields, "stream", ""))
    return Request(
        model=model,
        messages=_messages(fields),
        tools=tools,
        settings=read_settings(fields, tools),
        stream=stream,
        include_usage=wants_usage(fields, stream),
        extras=read_extras(fields),
        raw=Raw(NAME, members),
    )


def _messages(fields: Obj) -> tuple[Message, ...]:
    if fields.get("messages") is None:
        reject("is required", "messages")
    conversation = ChatPairing()
    messages: list[Message] = []
    listed = LazyArray(fields["messages"], "messages")
    for at, message in enumerate(decode_messages(listed)):
        where = f"messages[{at}]"
        messages.append(conversation.add(read_decoded(message, Raw(NAME, listed, at=at), where), where))
    if not messages:
        reject("must not be empty", "messages")
    return tuple(messages)
