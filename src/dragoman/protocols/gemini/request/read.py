"""A Gemini client's request, read into the neutral one.

The model's name and the wish to stream are in the path, not in the body:
`/v1beta/models/{model}:streamGenerateContent`.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from ....errors import BadRequest
from ....messages import Message, Raw, Request, Text
from ...fields import Body, parse_object, reject
from .keys import GEMINI, Fields
from .pairing import paired
from .read_parts import read_content, read_part
from .read_settings import read_settings, read_tools

_ADDRESS = re.compile(r"(?:^|/)(?:models/(?P<model>.+)|(?P<tuned>tunedModels/.+)):(?P<verb>\w+)$")
_STREAMS = {"generateContent": False, "streamGenerateContent": True, "countTokens": False}


def read_request(body: Body, path: str = "") -> Request:
    """The body of a `generateContent` call, streaming or not, and the path it was posted to."""
    top = Fields(parse_object(body), "")
    model, stream = _addressed(path, top)
    contents = top.children("contents") or reject("is required", "contents")

    def where(content: int, response: int) -> str:
        return _response_path(contents[content], response)

    tools = read_tools(top)
    settings, extras = read_settings(top, tools)
    read = [read_content(content.value, content.where) for content in contents]
    return Request(
        model=model,
        messages=(*_system(top), *paired(read, where, elsewhere=top.get("cachedContent") is not None)),
        tools=tools,
        settings=settings,
        stream=stream,
        extras=extras or None,
        raw=Raw(GEMINI, top.value),
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
