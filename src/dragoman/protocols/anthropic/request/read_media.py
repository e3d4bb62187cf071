"""Read images, documents and search results of an Anthropic request, also inside tool results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ....model.messages import Media, Raw, Text
from ...common.fields import is_array, is_object, join, reject
from ...common.typed_json import Members, Reader, member, members_of, optional, value
from ..own import NAME
from .wire import DocumentBlock, ImageBlock, SearchResultBlock, Source, TextBlock, ToolReference

_text = Reader(TextBlock)
_reference = Reader(ToolReference)


def media_of(type: str, members: Members, raw: msgspec.Raw, where: str) -> Media | None:
    """Read a block as media; None if it has another type, or a source that only Anthropic supports."""
    found = _MEDIA.get(type)
    if found is None:
        return None
    reader, read = found
    block, _ = reader.split(members, where)
    return read(block, raw, where)


def result_parts(content: str | list[msgspec.Raw] | None, where: str) -> tuple[Text | Media, ...]:
    """Read the content of the `tool_result` block at `where`."""
    if isinstance(content, list):
        return tuple(_result_part(raw, f"{where}.content[{at}]") for at, raw in enumerate(content))
    return (Text(content),) if content else ()


def _result_part(raw: msgspec.Raw, where: str) -> Text | Media:
    """Read one block. Blocks that only Anthropic supports stay in the `raw` of the whole result."""
    members = members_of(raw, where)
    type: str = member(members, "type", str, where)
    if type == "text":
        block, _ = _text.split(members, where)
        return Text(block.text, block.cache_control or None)
    if type == "tool_reference":
        reference, _ = _reference.split(members, where)
        # Anthropic's tool search answers with references. Other upstreams get all tools at once.
        return Text(f"The tool {reference.tool_name} can be called now.")
    return media_of(type, members, raw, where) or Text(str(raw, "utf-8"))


def _image(block: ImageBlock, raw: msgspec.Raw, where: str) -> Media | None:
    source, at = block.source, f"{where}.source"
    media = Media(kind="image", cache=block.cache_control, raw=Raw(NAME, raw))
    match source.type:
        case "base64":
            return msgspec.structs.replace(
                media, media_type=_need(source, "media_type", at), data=_need(source, "data", at)
            )
        case "url":
            return msgspec.structs.replace(media, url=_need(source, "url", at))
        case "file":
            return msgspec.structs.replace(media, file_id=_need(source, "file_id", at))
        case _:
            return None


def _document(block: DocumentBlock, raw: msgspec.Raw, where: str) -> Media | None:
    source, at = block.source, f"{where}.source"
    media = Media(
        kind="document",
        media_type=source.media_type or "",
        name=block.title,
        context=block.context,
        cache=block.cache_control,
        raw=Raw(NAME, raw),
    )
    match source.type:
        case "base64":
            return msgspec.structs.replace(media, data=_need(source, "data", at))
        case "text":
            return msgspec.structs.replace(media, text=_need(source, "data", at))
        case "content":
            text = _joined_text(source.content, at)
            return msgspec.structs.replace(media, text=text, media_type="text/plain")
        case "url":
            return msgspec.structs.replace(media, url=_need(source, "url", at))
        case "file":
            return msgspec.structs.replace(media, file_id=_need(source, "file_id", at))
        case _:
            return None


def _search_result(block: SearchResultBlock, raw: msgspec.Raw, where: str) -> Media:
    """Read a search result as a text document with a title and its source."""
    return Media(
        kind="document",
        media_type="text/plain",
        text=_joined_text(block.content, where),
        name=block.title,
        context=block.source,
        cache=block.cache_control,
        raw=Raw(NAME, raw),
    )


def _need(source: Source, key: str, where: str) -> str:
    found: str | None = getattr(source, key)
    return reject("is required", where, key) if found is None else found


def _joined_text(raw: msgspec.Raw | msgspec.UnsetType, where: str) -> str:
    """The text of a string or of a list of blocks."""
    given = optional(raw)
    content = None if given is None else value(given, join(where, "content"))
    if isinstance(content, str):
        return content
    blocks = [block for block in content if is_object(block)] if is_array(content) else []
    return "\n\n".join(block["text"] for block in blocks if isinstance(block.get("text"), str))


_MEDIA: dict[str, tuple[Reader[Any], Callable[[Any, msgspec.Raw, str], Media | None]]] = {
    "image": (Reader(ImageBlock), _image),
    "document": (Reader(DocumentBlock), _document),
    "search_result": (Reader(SearchResultBlock), _search_result),
}
