"""Write neutral parts as Anthropic content blocks."""

from __future__ import annotations

from collections.abc import Sequence

from ....model.messages import (
    Cache,
    Extras,
    Media,
    Opaque,
    Part,
    Search,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    members_for,
)
from ...common import cache_breakpoints
from ...common.call_ids import UniqueIds
from ...common.fields import Obj
from ...common.freeform import arguments_object
from ...common.notices import Notices
from ...common.tool_names import ToolNames
from ...common.turns import FAILED_SILENTLY
from ..own import NAME, is_own, members


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
            return members(part.raw)
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
