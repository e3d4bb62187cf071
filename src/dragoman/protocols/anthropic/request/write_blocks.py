"""Write neutral parts as Anthropic content blocks.

`ContentFilter` keeps what Anthropic accepts, drops the rest with a notice, or refuses it. `BlockWriter`
writes what it keeps.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ....model.errors import BadRequest
from ....model.messages import (
    Cache,
    Extras,
    Media,
    Message,
    Opaque,
    Part,
    Refusal,
    Search,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    members_for,
)
from ...base import Target
from ...common import cache_breakpoints, inline_media
from ...common.call_ids import UniqueIds
from ...common.fields import Obj
from ...common.freeform import arguments_object
from ...common.notices import Notices
from ...common.tool_names import ToolNames
from ...common.turns import FAILED_SILENTLY
from ..own import NAME, goes_back, is_clients, is_own, members, with_input

# Anthropic answers any other image type with a 400.
_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_PDF = "application/pdf"


class Marks:
    """Places cache breakpoints. `marks` is the number of breakpoints in the whole request.

    `wanted`: false for a model without a cache, which gets none.
    """

    def __init__(self, marks: int, notices: Notices, *, wanted: bool = True) -> None:
        self._surplus = cache_breakpoints.surplus(marks, notices)
        self._wanted = wanted

    def put(self, block: Obj, cache: Cache | None) -> Obj:
        if cache is None or not self._wanted:
            return block
        # Anthropic refuses a fifth breakpoint. The last four are kept, because they cover the longest
        # prefixes.
        if self._surplus:
            self._surplus -= 1
            return block
        return block | {"cache_control": cache_control(cache)}


def cache_control(cache: Cache) -> Obj:
    control: Obj = {"type": "ephemeral"}
    # Anthropic has two lifetimes. OpenAI's are 30 minutes and 12 hours.
    if cache.ttl is not None:
        control["ttl"] = cache.ttl if cache.ttl in ("5m", "1h") else _nearest(cache.ttl)
    return control


def _nearest(ttl: str) -> str:
    return "1h" if ttl.endswith(("h", "d")) else "5m"


class BlockWriter:
    """Writes parts. Call it in the order of the prompt: ids and cache marks depend on it."""

    def __init__(
        self, names: ToolNames, ids: UniqueIds, marks: Marks, notices: Notices, *, own: bool
    ) -> None:
        self._names = names
        self._ids = ids
        self._marks = marks
        self._notices = notices
        self._own = own

    def blocks(self, parts: Sequence[Part]) -> list[Obj]:
        return [self.block(part) for part in parts]

    def block(self, part: Part) -> Obj:
        if isinstance(part, Text):
            return self._text(part)
        if isinstance(part, ToolCall):
            return self._call(part)
        if isinstance(part, ToolResult):
            return self._result(part)
        if isinstance(part, Thinking):
            return self._extended(_thinking(part), part.extras)
        if isinstance(part, Media):
            return self._media(part)
        if isinstance(part, Opaque):
            return with_input(members(part.raw), part.input)
        assert not isinstance(part, Search)  # readers turn it into a call and its result
        return {"type": "text", "text": part.text}

    def _extended(self, block: Obj, extras: Extras | None) -> Obj:
        """`block` with the members that only Anthropic has, if the client speaks Anthropic."""
        return block | members_for(NAME, extras) if extras and self._own else block

    def _text(self, text: Text) -> Obj:
        if self._own and "type" in members_for(NAME, text.extras):
            return members_for(NAME, text.extras)  # the text of another block: a summary
        block: Obj = {"type": "text", "text": text.text}
        # A citation of another provider cannot be sent: Anthropic does not know the page.
        citations = [citation.raw.value for citation in text.citations if is_own(citation.raw)]
        if citations:
            block["citations"] = citations
        return self._extended(self._marks.put(block, text.cache), text.extras)

    def _media(self, media: Media) -> Obj:
        if is_own(media.raw):
            return members(media.raw)
        block: Obj = {"type": media.kind, "source": _source(media)}
        if media.kind == "document":
            named = {"title": media.name, "context": media.context}
            block |= {key: value for key, value in named.items() if value}
        return self._marks.put(block, media.cache)

    def _call(self, call: ToolCall) -> Obj:
        # The upstream made the ids of a client that speaks Anthropic, too.
        id = call.id if self._own else self._ids.call(call.id)
        if is_own(call.raw):
            return members(call.raw) | {"id": id}
        block: Obj = {
            "type": "tool_use",
            "id": id,
            "name": self._names.out(call.name, call.namespace),
            "input": arguments_object(call, self._notices),
        }
        if self._own and call.namespace:
            block["toolset_name"] = call.namespace
        return self._extended(self._marks.put(block, call.cache), call.extras)

    def _result(self, result: ToolResult) -> Obj:
        id = result.call_id if self._own else self._ids.result(result.call_id)
        if is_own(result.raw):
            return members(result.raw) | {"tool_use_id": id}
        block: Obj = {"type": "tool_result", "tool_use_id": id}
        content = [self.block(part) for part in result.parts]
        # Anthropic refuses an error result without content.
        if result.is_error and not content:
            content = [{"type": "text", "text": FAILED_SILENTLY}]
        if content:
            block["content"] = content
        if result.is_error:
            block["is_error"] = True
        return self._extended(self._marks.put(block, result.cache), result.extras)


def _thinking(thought: Thinking) -> Obj:
    seal = thought.seal
    if seal is None:
        return {"type": "thinking", "thinking": thought.text}
    if seal.redacted:
        return {"type": "redacted_thinking", "data": seal.data}
    return {"type": "thinking", "thinking": thought.text, "signature": seal.data}


def _source(media: Media) -> Obj:
    if media.text is not None:
        return {"type": "text", "media_type": "text/plain", "data": media.text}
    if media.data is not None:
        return {"type": "base64", "media_type": media.media_type, "data": media.data}
    return {"type": "url", "url": media.url}


class ContentFilter:
    """Converts, drops or refuses content that Anthropic does not support. `BlockWriter` writes the rest."""

    def __init__(self, target: Target, notices: Notices, *, own: bool) -> None:
        self._target = target
        self._notices = notices
        # A model that does not sign its thoughts gets them back from a client of this protocol.
        self._unsigned = own and not target.takes.signs_thinking

    def message(self, message: Message, index: int) -> Message:
        """The message without unsupported parts. No part may remain."""
        if is_clients(message):
            kept = [p for p in message.parts if not isinstance(p, Thinking) or self._goes_back(p)]
            return msgspec.structs.replace(message, parts=tuple(kept))
        if message.name:
            text = "Anthropic's messages have no names"
            self._notices.warn("message-name-dropped", f"messages[{index}]", text)
        if message.role in ("system", "developer"):
            return Message("system", tuple(self._system(message, f"messages[{index}]")))
        parts: list[Part] = []
        for at, part in enumerate(message.parts):
            kept = self._part(part, index, at, message.role)
            if kept is not None:
                parts.append(kept)
        return Message(message.role, tuple(parts))

    def _system(self, message: Message, path: str) -> list[Part]:
        kept: list[Part] = []
        for part in message.parts:
            if isinstance(part, Text) and not _is_blank(part):
                kept.append(self._uncited(part, path) if part.citations else part)
            elif isinstance(part, Opaque) and is_own(part.raw):
                kept.append(part)
            elif not isinstance(part, Text):
                self._notices.warn("opaque-dropped", path, "a system prompt can only be text")
        return kept

    def _part(self, part: Part, index: int, at: int, role: str) -> Part | None:
        if isinstance(part, Text):
            # Anthropic refuses an empty or blank text block with a 400, although its own answers may contain
            # one (anthropic-sdk-python issue 461). Chat clients send `content: ""` beside calls.
            if _is_blank(part):
                return None
            return self._uncited(part, _path(index, at)) if part.citations else part
        if isinstance(part, ToolCall):
            return part
        if isinstance(part, ToolResult):
            return self._result(part, index, at)
        if isinstance(part, Thinking):
            return part if self._goes_back(part) else None
        if isinstance(part, Media):
            return self._media(part, _path(index, at), role)
        if isinstance(part, Opaque):
            return self._opaque(part, _path(index, at))
        return Text(part.text) if isinstance(part, Refusal) and not _is_blank(part) else None

    def _goes_back(self, thought: Thinking) -> bool:
        # Claude refuses a thought without a signature.
        return self._unsigned if thought.seal is None else goes_back(thought.seal, self._target)

    def _uncited(self, text: Text, path: str) -> Text:
        """The text with Anthropic's own citations only."""
        # A web citation needs the encrypted index of the search result that Anthropic itself returned. There
        # is no way to make one for a page that another provider found.
        own = tuple(citation for citation in text.citations if is_own(citation.raw))
        if own == text.citations:
            return text
        self._notices.warn("citations-dropped", path, "citations of another provider cannot be sent")
        return msgspec.structs.replace(text, citations=own)

    def _media(self, media: Media, path: str, role: str) -> Media | None:
        if role == "assistant" and not is_own(media.raw):
            message = f"a {media.kind} made by a model cannot be sent back"
            self._notices.warn("assistant-media-dropped", path, message)
            return None
        return sendable(media, path)

    def _result(self, result: ToolResult, index: int, at: int) -> ToolResult:
        if is_own(result.raw):
            return result
        parts: list[Text | Media] = []
        for place, part in enumerate(result.parts):
            if isinstance(part, Media):
                parts.append(sendable(part, f"{_path(index, at)}.parts[{place}]"))
            elif not _is_blank(part):
                parts.append(self._uncited(part, _path(index, at)) if part.citations else part)
        kept = tuple(parts)
        return result if kept == result.parts else msgspec.structs.replace(result, parts=kept)

    def _opaque(self, part: Opaque, path: str) -> Opaque | None:
        if is_own(part.raw):
            return part
        kind = part.type or "a part"
        message = f"{kind} of {part.raw.protocol} has no counterpart"
        self._notices.warn("opaque-dropped", path, message)
        return None


def _path(index: int, at: int) -> str:
    """The path of a part, for notices and errors."""
    return f"messages[{index}].parts[{at}]"


def _is_blank(part: Text | Refusal) -> bool:
    return not part.text or part.text.isspace()


def sendable(media: Media, path: str) -> Media:
    """`media` in a form that Anthropic accepts. Raises `BadRequest` if there is none."""
    if is_own(media.raw):
        return media
    if media.kind not in ("image", "document"):
        raise BadRequest(f"Anthropic does not accept {media.kind}", path)
    if media.data is None and media.text is None and media.url is None:
        # File ids are bound to the provider that stores the file.
        raise BadRequest("a file of another provider cannot be sent to Anthropic", path)
    if media.url is not None and not media.url.startswith(("https://", "http://")):
        raise BadRequest(f"Anthropic cannot fetch {media.url[:60]!r}", path)
    if media.data is None:
        return media
    return _image(media, path) if media.kind == "image" else _document(media, path)


def _image(media: Media, path: str) -> Media:
    # `image/jpg` is not a registered media type, but many clients send it.
    type = media.media_type.lower().replace("image/jpg", "image/jpeg")
    if type not in _IMAGES:
        known = ", ".join(sorted(_IMAGES))
        raise BadRequest(f"Anthropic takes {known}, not {media.media_type or 'unknown'}", path)
    return msgspec.structs.replace(media, media_type=type)


def _document(media: Media, path: str) -> Media:
    type = media.media_type.lower().partition(";")[0].strip()
    if type == _PDF:
        return msgspec.structs.replace(media, media_type=_PDF)
    text = inline_media.text_of(media, path)
    if text is not None:
        return msgspec.structs.replace(media, data=None, text=text)
    raise BadRequest(f"Anthropic takes {_PDF} and text, not {media.media_type or 'unknown'}", path)
