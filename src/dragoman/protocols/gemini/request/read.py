"""A Gemini client's request, read into the neutral one.

The model's name and the wish to stream are in the path, not in the body:
`/v1beta/models/{model}:streamGenerateContent`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from urllib.parse import unquote

import msgspec

from ....errors import BadRequest
from ....messages import Message, Raw, Request, Text
from ...fields import Obj, parse_object, reject
from ...history import History
from ...later import listed
from ...memory import remembered
from ...pieces import Body
from ...recall import FieldByField, Way, recalled
from .keys import GEMINI, Fields
from .pairing import paired
from .read_history import read_history
from .read_parts import read_content, read_part
from .read_plain import read_list
from .read_settings import read_settings, read_tools

_ADDRESS = re.compile(r"(?:^|/)(?:models/(?P<model>.+)|(?P<tuned>tunedModels/.+)):(?P<verb>\w+)$")
_STREAMS = {"generateContent": False, "streamGenerateContent": True, "countTokens": False}


def read_request(body: Body, path: str = "") -> Request:
    """The body of a `generateContent` call, streaming or not, and the path it was posted to."""
    return recalled(body, path, _WAY) or _read_fields(parse_object(body), path)


def _read_fields(value: Obj, path: str) -> Request:
    top = Fields(value, "")
    address = _addressed(path, top)
    contents = top.children("contents") or reject("is required", "contents")

    def where(content: int, response: int) -> str:
        return _response_path(contents[content], response)

    def messages() -> tuple[Message, ...]:
        read = [read_content(content.value, content.where) for content in contents]
        return (*_system(top), *paired(read, where, elsewhere=top.get("cachedContent") is not None))

    return _request(top, address, messages)


def _request(top: Fields, address: tuple[str, bool], messages: Callable[[], Sequence[Message]]) -> Request:
    model, stream = address
    given = top.get("tools")
    tools = remembered(given, GEMINI, lambda: read_tools(Fields({"tools": listed(given)}, "")))
    settings, extras = read_settings(top, tools)
    return Request(
        model=model,
        messages=messages(),
        tools=tools,
        settings=settings,
        stream=stream,
        extras=extras or None,
        raw=Raw(GEMINI, top.value),
    )


def _known_leading(value: Obj) -> tuple[Message, ...]:
    top = Fields(value, "")
    if top.get("cachedContent") is not None:
        raise FieldByField  # calls may be there that are not here
    return tuple(_system(top))


def _known_request(value: Obj, history: History, path: str) -> Request:
    top = Fields(value, "")
    return _request(top, _addressed(path, top), lambda: history)


def _gone_on(before: Request, value: Obj, history: History, path: str) -> Request:
    model, stream = _addressed(path, Fields(value, ""))
    raw = Raw(GEMINI, value)
    return msgspec.structs.replace(before, model=model, stream=stream, messages=history, raw=raw)


_WAY = Way(
    name="contents",
    read_list=read_list,
    leading=_known_leading,
    history=read_history,
    request=_known_request,
    gone_on=_gone_on,
)


def _addressed(path: str, top: Fields) -> tuple[str, bool]:
    """The model and whether to stream, by the path; without one, by a `model` in the body."""
    if not path:
        return (top.string("model") or "").removeprefix("models/"), False
    match = _ADDRESS.search(unquote(path.partition("?")[0]))
    if match is None:
        raise BadRequest(f"the path {path!r} names no model")
    if match["verb"] not in _STREAMS:
        raise BadRequest(f"{match['verb']!r} is not one of {', '.join(_STREAMS)}")
    return match["model"] or match["tuned"], _STREAMS[match["verb"]]


def _system(top: Fields) -> list[Message]:
    """`systemInstruction`: a content (its role means nothing), one bare part, or a string."""
    value = top.get("systemInstruction")
    if isinstance(value, str):
        parts = [Text(value)] if value else []
    else:
        content = top.child("systemInstruction")
        if content is None:
            return []
        given = [content] if content.get("parts") is None else content.children("parts")
        texts = [part for part in given if part.get("text") is not None]
        parts = [p for part in texts for p in read_part(part.value, part.where)]
    return [Message("system", tuple(parts), raw=Raw(GEMINI, value))] if parts else []


def _response_path(content: Fields, number: int) -> str:
    """Where the `number`th functionResponse of a content says what it answers."""
    parts = (part.child("functionResponse") for part in content.children("parts"))
    response = [fields for fields in parts if fields is not None][number]
    return response.path("id" if response.get("id") else "name")
