"""Read the request of a Gemini client.

The model's name and the choice to stream are in the path, not in the body:
`/v1beta/models/{model}:streamGenerateContent`.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

import msgspec

from ....model.errors import BadRequest
from ....model.messages import Message, Raw, Request, Text
from ...common.fields import Body, reject
from ...common.typed_json import body_members, decode_members, reads_body, value
from ..own import NAME
from .keys import Fields, SplitArray, listed
from .pairing import paired
from .read_parts import read_content
from .read_settings import read_settings
from .read_tools import read_tools

_UNDECODED = frozenset({"contents", "tools"})
_ADDRESS = re.compile(r"(?:^|/)(?:models/(?P<model>.+)|(?P<tuned>tunedModels/.+)):(?P<verb>\w+)$")
_STREAMS = {"generateContent": False, "streamGenerateContent": True, "countTokens": False}


@reads_body
def read_request(body: Body, path: str = "") -> Request:
    """Read the body and the path of a `generateContent` or `streamGenerateContent` request."""
    top = Fields(decode_members(body_members(body), _UNDECODED), "")
    model, stream = _addressed(path, top)
    given: msgspec.Raw | None = top.get("contents")
    contents = [] if given is None else listed(given, "contents")
    if given is None or not contents:
        reject("is required", "contents")
    array = SplitArray(given, [raw for raw, _ in contents])

    def where(content: int, response: int) -> str:
        return _response_path(*contents[content], response)

    tools = () if top.get("tools") is None else read_tools(top.get("tools"))
    settings, extras = read_settings(top, tools)
    read = [read_content(raw, path, Raw(NAME, array, at=at)) for at, (raw, path) in enumerate(contents)]
    return Request(
        model=model,
        messages=(*read_system(top), *paired(read, where, elsewhere=top.get("cachedContent") is not None)),
        tools=tools,
        settings=settings,
        stream=stream,
        extras=extras or None,
        raw=Raw(NAME, top.value),
    )


def _addressed(path: str, top: Fields) -> tuple[str, bool]:
    """The model, and whether to stream, from the path. Without a path, from `model` in the body."""
    if not path:
        return (top.string("model") or "").removeprefix("models/"), False
    # Clients escape slashes in model names (`openrouter%2Fqwen…`), or do not.
    match = _ADDRESS.search(unquote(path.partition("?")[0]))
    if match is None:
        raise BadRequest(f"the path {path!r} names no model")
    if match["verb"] not in _STREAMS:
        raise BadRequest(f"{match['verb']!r} is not one of {', '.join(_STREAMS)}")
    return match["model"] or match["tuned"], _STREAMS[match["verb"]]


def read_system(top: Fields) -> list[Message]:
    """Read `systemInstruction`: a content (its role has no meaning), a single part, or a string."""
    given = top.get("systemInstruction")
    if isinstance(given, str):
        texts = [given] if given else []
    else:
        content = top.child("systemInstruction")
        if content is None:
            return []
        parts = [content] if content.get("parts") is None else content.children("parts")
        texts = [text for part in parts if (text := part.string("text")) is not None]
    return [Message("system", tuple(map(Text, texts)), raw=Raw(NAME, given))] if texts else []


def _response_path(raw: msgspec.Raw, at: str, number: int) -> str:
    """The path of the id in the `number`th functionResponse of the content at index `at`."""
    parts = (part.child("functionResponse") for part in Fields(value(raw, at), at).children("parts"))
    response = [fields for fields in parts if fields is not None][number]
    return response.path("id" if response.get("id") else "name")
