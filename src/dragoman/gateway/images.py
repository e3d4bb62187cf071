"""Images for models that cannot see: described in words by another model, or named by a placeholder.

A conversation that once had an image would fail for ever otherwise: each request repeats its history.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from ..config.types import TargetConfig
from ..model.errors import BadRequest, DragomanError
from ..model.messages import Media, Message, Notice, Part, Request, Settings, Text, ToolResult
from ..routing.router import Choice

_PROMPT = (
    "Describe this image for a model that cannot see it and must work with your words alone. Write down all "
    "text in it, word by word. Say what is shown, how it is arranged, and what stands out: errors, selected "
    "elements, numbers. Do not guess, and add nothing else."
)
_LONGEST_DESCRIPTION = 2000
"""In tokens."""
_MOST_AT_ONCE = 4
_MOST_KEPT = 1000

Describe = Callable[[Request], Awaitable[str]]
"""Asks the model that sees. Raises `DragomanError` if it gives no answer."""


def cannot_see(choice: Choice) -> bool:
    """Is it known that the model takes no images?"""
    return choice.target.takes.images is False


class Descriptions:
    """What images show, by the model that was asked and the content of the image."""

    def __init__(self, most: int = _MOST_KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._asked: dict[str, asyncio.Task[str]] = {}
        """Questions under way. Equal images are asked about once."""
        self._turn = asyncio.Semaphore(_MOST_AT_ONCE)

    async def of(self, image: Media, target: TargetConfig, describe: Describe) -> str:
        """What `image` shows."""
        key = _digest(image, target)
        known = self._kept.get(key)
        if known is not None:
            self._kept.move_to_end(key)
            return known
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.create_task(self._ask(key, image, target, describe))
            task.add_done_callback(lambda done: self._over(key, done))
        # A client that leaves must not take the answer from the others.
        return await asyncio.shield(task)

    async def _ask(self, key: str, image: Media, target: TargetConfig, describe: Describe) -> str:
        request = Request(
            model=target.model,
            messages=(Message("user", (image, Text(_PROMPT))),),
            settings=Settings(max_tokens=_LONGEST_DESCRIPTION),
        )
        async with self._turn:
            words = (await describe(request)).strip()
        if not words:
            raise DragomanError("it said nothing")
        self._kept[key] = words
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return words

    def _over(self, key: str, task: asyncio.Task[str]) -> None:
        self._asked.pop(key, None)
        if not task.cancelled():
            task.exception()  # whoever waits is told; if nobody does any more, nobody needs to be


def _digest(image: Media, target: TargetConfig) -> str:
    return hashlib.sha256(f"{target.upstream}/{target.model}\n{_content(image)}".encode()).hexdigest()


def _content(image: Media) -> str:
    return image.data or image.url or f"{image.keeper}/{image.file_id}"


async def in_words(
    request: Request,
    target: TargetConfig | None,
    descriptions: Descriptions,
    describe: Describe,
    *,
    strict: bool,
) -> tuple[Request, tuple[Notice, ...]]:
    """`request` without images: each is described by `target`, or named by a placeholder."""
    images = [image for message in request.messages for image in _images(message.parts)]
    if not images:
        return request, ()
    words: dict[str, str] = {}
    failed: set[str] = set()
    if target is not None:
        asked = [descriptions.of(image, target, describe) for image in images]
        for image, found in zip(images, await asyncio.gather(*asked, return_exceptions=True), strict=True):
            if isinstance(found, str):
                words[_content(image)] = f"[image, described by another model:\n{found}\n]"
            elif isinstance(found, DragomanError):
                failed.add(found.message)
            else:
                raise found
    described = sum(_content(image) in words for image in images)
    notices = _notices(described, len(images) - described, target, failed)
    if strict and described < len(images):
        raise BadRequest(notices[-1].message, "messages")
    messages = tuple(_replaced(message, words) for message in request.messages)
    return request.changed(messages=messages), notices


def _notices(described: int, named: int, target: TargetConfig | None, failed: set[str]) -> tuple[Notice, ...]:
    said: list[Notice] = []
    if described and target is not None:
        by = f"{_counted(described)} described by {target.upstream}/{target.model}"
        said.append(Notice("images-described", "messages", by))
    if named:
        why = f"; the description failed: {'; '.join(sorted(failed))}" if failed else ""
        blind = f"the model cannot see images: {_counted(named)} replaced by a placeholder{why}"
        said.append(Notice("images-replaced", "messages", blind))
    return tuple(said)


def _counted(images: int) -> str:
    return "1 image was" if images == 1 else f"{images} images were"


def _images(parts: tuple[Part, ...]) -> list[Media]:
    found: list[Media] = []
    for part in parts:
        if isinstance(part, Media) and part.kind == "image":
            found.append(part)
        elif isinstance(part, ToolResult):
            found += _images(part.parts)
    return found


def _replaced(message: Message, words: Mapping[str, str]) -> Message:
    if not _images(message.parts):
        return message
    parts = tuple(_part(part, words) for part in message.parts)
    return Message(message.role, parts, message.name)


def _part(part: Part, words: Mapping[str, str]) -> Part:
    if isinstance(part, Media) and part.kind == "image":
        return Text(words.get(_content(part)) or placeholder(part), part.cache)
    if isinstance(part, ToolResult) and _images(part.parts):
        inner = tuple(_inner(one, words) for one in part.parts)
        return msgspec.structs.replace(part, parts=inner, raw=None)
    return part


def _inner(part: Text | Media, words: Mapping[str, str]) -> Text | Media:
    replaced = _part(part, words)
    assert isinstance(replaced, Text | Media)
    return replaced


def placeholder(image: Media) -> str:
    """What a model that cannot see reads in place of an image."""
    if image.data is not None:
        size = max(1, round(len(image.data) * 3 / 4 / 1024))
        what = f"{image.media_type or 'of an unknown type'}, {size} KB"
    else:
        what = image.url or image.name or "a file at the provider"
    return f"[image: {what}; this model cannot see images]"
