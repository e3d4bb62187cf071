"""Images for models that take none. One image in the history would make every later request fail."""

from __future__ import annotations

import msgspec

from ..model.errors import BadRequest
from ..model.messages import Media, Message, Notice, Part, Request, Text, ToolResult
from ..protocols.base import Target


def without_images(request: Request, target: Target) -> tuple[Request, tuple[Notice, ...]]:
    """`request` with words in place of images, if the model is known to take none."""
    if target.takes.images is not False:
        return request, ()
    messages = tuple(map(_worded, request.messages))
    pairs = enumerate(zip(messages, request.messages, strict=True))
    first = next((at for at, (new, old) in pairs if new is not old), None)
    if first is None:
        return request, ()
    message = f"{target.model} takes no images: words stand in their place"
    path = f"messages[{first}]"
    if target.strict:
        raise BadRequest(message, path)
    return request.changed(messages=messages), (Notice("images-replaced", path, message),)


def _worded(message: Message) -> Message:
    parts = tuple(map(_part, message.parts))
    if all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return message
    return msgspec.structs.replace(message, parts=parts, raw=None)


def _part(part: Part) -> Part:
    if isinstance(part, ToolResult):
        inner = tuple(map(_shown, part.parts))
        same = all(new is old for new, old in zip(inner, part.parts, strict=True))
        return part if same else msgspec.structs.replace(part, parts=inner, raw=None)
    return _shown(part) if isinstance(part, Media) else part


def _shown(part: Text | Media) -> Text | Media:
    if not isinstance(part, Media) or part.kind != "image":
        return part
    name = f" {part.name}" if part.name else ""
    return Text(f"[image{name}: this model cannot see it]", part.cache)
