"""Replace images for models without vision: by another model's description, or by a placeholder.

Otherwise a conversation with one image would fail at every later request, because each request repeats the
history.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from ...config.types import TargetConfig
from ...model.errors import BadRequest, DragomanError
from ...model.messages import Media, Message, Notice, Part, Request, Settings, Text, ToolResult
from ...protocols.base import Target
from ...store import DESCRIPTIONS, EntryKey, Store, StoredEntry, StoreError

_PROMPT = (
    "Describe this image for a model that cannot see it and must work with your words alone. Write down all "
    "text in it, word by word. Say what is shown, how it is arranged, and what stands out: errors, selected "
    "elements, numbers. Do not guess, and add nothing else."
)
_LONGEST_DESCRIPTION = 2000
"""In tokens."""
# A conversation may bring many images at once. More parallel requests could hit the rate limit of the model.
_MAX_AT_ONCE = 4

Describe = Callable[[Request], Awaitable[str]]
"""Sends a request to the model with vision. Raises `DragomanError` if it fails."""


def cannot_see(target: Target) -> bool:
    """Is the model known to accept no images?"""
    return target.takes.images is False


def would_be_replaced(request: Request, target: Target) -> bool:
    """Does the request hold images that the model of `target` cannot see?"""
    return cannot_see(target) and any(_images(message.parts) for message in request.messages)


class Descriptions:
    """Caches descriptions of images, by the client, the describing model and the content of the image."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asked: dict[str, asyncio.Task[str]] = {}
        """Running requests. Requests for equal images are coalesced."""
        self._turn = asyncio.Semaphore(_MAX_AT_ONCE)

    async def of(self, image: Media, target: TargetConfig, scope: str, describe: Describe) -> str:
        """The description of `image`. No client gets a description that was written for another `scope`."""
        key = _digest(image, target, scope)
        task = self._asked.get(key)
        if task is None:
            task = self._asked[key] = asyncio.create_task(self._ask(key, image, target, describe))
            task.add_done_callback(lambda done: self._task_done(key, done))
        # Other clients may wait for the same task. A client that disconnects must not cancel it.
        return await asyncio.shield(task)

    async def _ask(self, key: str, image: Media, target: TargetConfig, describe: Describe) -> str:
        known = await self._stored(key)
        if known is not None:
            return known
        request = Request(
            model=target.model,
            messages=(Message("user", (image, Text(_PROMPT))),),
            settings=Settings(max_tokens=_LONGEST_DESCRIPTION),
        )
        async with self._turn:
            words = (await describe(request)).strip()
        if not words:
            raise DragomanError("the description is empty")
        with contextlib.suppress(StoreError):  # the next request describes it again
            await self._store.put(
                [StoredEntry(EntryKey(DESCRIPTIONS, key), words.encode("utf-8", "replace"))]
            )
        return words

    async def _stored(self, key: str) -> str | None:
        """The description in the store. Another process may have asked for it."""
        wanted = EntryKey(DESCRIPTIONS, key)
        try:
            found = (await self._store.get([wanted])).get(wanted)
        except StoreError:
            return None
        return None if found is None else found.decode()

    def _task_done(self, key: str, task: asyncio.Task[str]) -> None:
        self._asked.pop(key, None)
        if not task.cancelled():
            # Marks the exception as retrieved: asyncio would log it if no client waits any more.
            task.exception()


def _digest(image: Media, target: TargetConfig, scope: str) -> str:
    text = f"{scope}\n{target.upstream}/{target.model}\n{_content(image)}"
    return hashlib.sha256(text.encode()).hexdigest()


def _content(image: Media) -> str:
    return image.data or image.url or f"{image.file_provider}/{image.file_id}"


async def replace_images(
    request: Request,
    target: TargetConfig | None,
    descriptions: Descriptions,
    describe: Describe,
    *,
    scope: str,
    strict: bool,
) -> tuple[Request, tuple[Notice, ...]]:
    """Replace each image of `request` by a description from `target`, or by a placeholder."""
    images = [image for message in request.messages for image in _images(message.parts)]
    if not images:
        return request, ()
    words: dict[str, str] = {}
    failed: set[str] = set()
    if target is not None:
        asked = [descriptions.of(image, target, scope, describe) for image in images]
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
    messages = tuple(_with_descriptions(message, words) for message in request.messages)
    return request.changed(messages=messages), notices


def _notices(described: int, named: int, target: TargetConfig | None, failed: set[str]) -> tuple[Notice, ...]:
    notices: list[Notice] = []
    if described and target is not None:
        by = f"{_image_count(described)} described by {target.upstream}/{target.model}"
        notices.append(Notice("images-described", "messages", by))
    if named:
        why = f"; the description failed: {'; '.join(sorted(failed))}" if failed else ""
        blind = f"the model cannot see images: {_image_count(named)} replaced by a placeholder{why}"
        notices.append(Notice("images-replaced", "messages", blind))
    return tuple(notices)


def _image_count(images: int) -> str:
    return "1 image was" if images == 1 else f"{images} images were"


def _images(parts: tuple[Part, ...]) -> list[Media]:
    found: list[Media] = []
    for part in parts:
        if isinstance(part, Media) and part.kind == "image":
            found.append(part)
        elif isinstance(part, ToolResult):
            found += _images(part.parts)
    return found


def _with_descriptions(message: Message, words: Mapping[str, str]) -> Message:
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
    """The text that replaces an image for a model without vision."""
    if image.data is not None:
        size = max(1, round(len(image.data) * 3 / 4 / 1024))
        what = f"{image.media_type or 'of an unknown type'}, {size} KB"
    else:
        what = image.url or image.name or "a file at the provider"
    return f"[image: {what}; this model cannot see images]"
