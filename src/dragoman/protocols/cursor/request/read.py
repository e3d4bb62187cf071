"""Read Cursor's requests, in every form.

If a body has the form of one protocol throughout, that protocol's reader reads it, and an upstream of the
same protocol gets it unchanged. Otherwise the reader of the matching protocol reads each piece, and all
writers write the request from its neutral form.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.messages import Message, Request, Settings, Text, Tool
from ...anthropic.request import read as anthropic
from ...anthropic.request.read_blocks import read_system
from ...common import tool_definition
from ...common.fields import (
    Body,
    Obj,
    boolean,
    is_array,
    is_object,
    need_string,
    objects,
    parse_object,
    reject,
    string,
)
from ...common.typed_json import as_json, reads_body
from ...openai_chat.request import read as chat
from ...openai_chat.request import read_settings as chat_settings
from ...openai_chat.request import read_tools as chat_tools
from ...openai_chat.request.read_pairs import ChatPairing
from ...openai_responses.request import read as responses
from .freeform_calls import with_freeform_calls
from .read_choice import read_choice
from .read_turns import plain, read_turn
from .shapes import ANTHROPIC_FIELDS, CHAT, RESPONSES, RESPONSES_FIELDS, shapes

_KNOWN = chat_settings.READ | responses.NEUTRAL | anthropic.KNOWN | {"reasoning", "text"}


@reads_body
def read_request(body: Body, path: str = "") -> Request:
    """Read a body of `POST /cursor/chat/completions`."""
    return read_fields(parse_object(body))


@reads_body
def read_streaming_request(body: Body, path: str = "") -> Request:
    """Read a body of `POST /cursor/v2/chat/completions`. Cursor's own protocol is always a stream."""
    fields = parse_object(body)
    return read_fields(fields if fields.get("stream") is not None else {**fields, "stream": True})


def read_fields(fields: Obj) -> Request:
    """Read a body from its decoded members."""
    return with_freeform_calls(_read(_tidied(fields)))


def _read(fields: Obj) -> Request:
    found = shapes(fields)
    if found <= {CHAT}:
        return chat.read_request(msgspec.json.encode(fields), "")
    stream = bool(boolean(fields, "stream", ""))
    include_usage = chat_settings.wants_usage(fields, stream)
    if found == {RESPONSES}:
        request = responses.read_request(msgspec.json.encode(_without_include_usage(fields)), "")
        return msgspec.structs.replace(request, include_usage=include_usage)
    tools = _tools(fields)
    return Request(
        model=need_string(fields, "model", ""),
        messages=_messages(fields),
        tools=tools,
        settings=_settings(fields, tools),
        stream=stream,
        include_usage=include_usage,
        extras={key: value for key, value in fields.items() if key not in _KNOWN} or None,
    )


def _tidied(fields: Obj) -> Obj:
    """Remove empty values that upstreams refuse: `content: []`, and null instead of text."""
    lists = {key: fields[key] for key in ("messages", "input") if is_array(fields.get(key))}
    return {**fields, **{key: [_tidied_turn(turn) for turn in turns] for key, turns in lists.items()}}


def _tidied_turn(turn: Any) -> Any:
    if not is_object(turn) or "role" not in turn or turn.get("content") not in (None, []):
        return turn
    calls = turn.get("tool_calls") or turn.get("function_call")
    # OpenAI refuses an empty array beside calls. It wants null there, and a string everywhere else.
    return {**turn, "content": None if calls else ""}


def _without_include_usage(fields: Obj) -> Obj:
    """Remove Chat's `include_usage`: Responses refuses it."""
    options = fields.get("stream_options")
    if not is_object(options) or "include_usage" not in options:
        return fields
    rest = {key: value for key, value in options.items() if key != "include_usage"}
    body = {key: value for key, value in fields.items() if key != "stream_options"}
    return {**body, "stream_options": rest} if rest else body


def _messages(fields: Obj) -> tuple[Message, ...]:
    conversation = ChatPairing()
    turns = [conversation.add(read_turn(turn, where), where) for where, turn in _turns(fields)]
    return (*_prompts(fields), *map(plain, turns))


def _turns(fields: Obj) -> list[tuple[str, Obj]]:
    given = fields.get("input")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if given and fields.get("messages"):
        reject("cannot be combined with messages: send the conversation in one of them", "input")
    key = "input" if given else "messages"
    turns = objects({key: given or fields.get("messages")}, key, "")
    return turns or reject("must not be empty", key)


def _prompts(fields: Obj) -> list[Message]:
    """System prompts outside of the messages: Anthropic's `system` and Responses' `instructions`."""
    system = fields.get("system")
    found = [] if system is None else [read_system(as_json(system))]
    instructions = string(fields, "instructions", "")
    if instructions:
        found.append(Message("system", (Text(instructions),)))
    return [plain(message) for message in found if message is not None]


def _tools(fields: Obj) -> tuple[Tool, ...]:
    """The tools without duplicates. Of two with one name, the later definition counts."""
    entries = objects(fields, "tools", "")
    found = [tool for where, entry in entries for tool in tool_definition.read_tool(entry, where)]
    beside: Obj = {key: fields[key] for key in ("functions", "web_search_options") if key in fields}
    found += chat_tools.read_tools(beside)
    named = {(tool.namespace, tool.name, tool.kind == "hosted"): tool for tool in found}
    return tuple(msgspec.structs.replace(tool, raw=None) for tool in named.values())


def _settings(fields: Obj, tools: tuple[Tool, ...]) -> Settings:
    """The settings that the readers of all protocols find. Chat's take precedence."""
    choice, parallel = read_choice(fields, tools)
    without_choice = {k: v for k, v in fields.items() if k not in ("tool_choice", "function_call")}
    merged = chat_settings.read_settings(without_choice, tools)
    of_responses = {key: fields[key] for key in RESPONSES_FIELDS if key in fields}
    of_anthropic = {key: fields[key] for key in ANTHROPIC_FIELDS if key in fields}
    for other in (
        responses.read_settings(of_responses),
        anthropic.read_settings(of_anthropic, tools),
        Settings(tool_choice=choice, parallel_tool_calls=parallel),
    ):
        merged = _filled(merged, other)
    previous = string(fields, "previous_response_id", "")
    return _filled(merged, Settings(previous_response_id=previous))


def _filled(settings: Settings, other: Settings) -> Settings:
    """`settings`, with missing values from `other`."""
    nothing = Settings()
    missing = {
        name: getattr(other, name)
        for name in Settings.__struct_fields__
        if getattr(settings, name) == getattr(nothing, name)
    }
    return msgspec.structs.replace(settings, **missing)
