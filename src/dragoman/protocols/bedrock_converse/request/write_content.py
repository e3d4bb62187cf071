"""A conversation in Converse's form: alternating messages of content blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ....model.messages import Cache, Media, Message, Part, Text, Thinking, ToolCall, ToolResult
from ...base import Target
from ...common import cache_breakpoints
from ...common.call_ids import IdRule, UniqueIds
from ...common.fields import Obj
from ...common.freeform import arguments_object
from ...common.notices import Notices
from ...common.tool_names import ToolNames
from ...common.turns import (
    FAILED_SILENTLY,
    PLACEHOLDER,
    MergedTurn,
    begins_answer,
    note_placeholder,
    note_prefill,
    turns,
)
from .supported import FORMATS

# The pattern of `toolUseId`.
IDS = IdRule(r"[a-zA-Z0-9_.:-]+", 64)
# Converse refuses other characters, two spaces in a row, and more than 200 characters in a document's name.
_IN_NAMES = re.compile(r"[^A-Za-z0-9\-()\[\] ]+")
_MAX_NAME_LENGTH = 200


class ContentWriter:
    """Writes the messages of one request."""

    def __init__(self, target: Target, names: ToolNames, notices: Notices) -> None:
        self._names = names
        self._notices = notices
        self._ids = UniqueIds(target.ids or IDS)
        takes = target.takes
        self._marks_prompts = target.marks_prompts
        # A model without a prompt cache refuses a request with cache points. A model whose name says nothing
        # gets them only if the config says `cache_marks = true`.
        may_mark = takes.caches or (takes.caches is None and target.cache_marks is True)
        self._marks = cache_breakpoints.MAX_BREAKPOINTS if may_mark else 0
        self._cache_times = target.cache_marks is True
        """May a cache point say how long? Only the config knows: older models of a family do not take it."""
        self._marks_tools = takes.signs_thinking and bool(takes.caches)
        """Nova, for one, has a cache and refuses cache points among its tools; Claude takes them."""
        self._prefills = takes.prefill is not False
        self._documents: set[str] = set()
        """The names of the request's documents."""

    def turns(self, messages: Sequence[Message]) -> list[Obj]:
        """Messages that alternate and begin with the user."""
        found = turns(messages, self._notices)
        if begins_answer(found) and not self._prefills:
            note_prefill(messages, self._notices)
            found.append(MergedTurn("user", [Text(PLACEHOLDER)]))
        written = [{"role": turn.role, "content": self._blocks(turn.parts)} for turn in found]
        if written and written[0]["role"] == "user":
            return written
        note_placeholder(self._notices)
        return [{"role": "user", "content": [{"text": PLACEHOLDER}]}, *written]

    def system(self, texts: Sequence[Text], instruction: str | None) -> list[Obj]:
        """The system prompt. `instruction` is said after everything else in it."""
        blocks: list[Obj] = []
        for text in texts:
            blocks += [{"text": text.text}, *self.mark(text.cache)]
        return [*blocks, {"text": instruction}] if instruction else blocks

    def mark_prompt(self, body: Obj) -> None:
        """Add cache points for a client that sets none: after the system prompt, which follows the tools, and
        after the user's last two turns, where the next request can read the cache."""
        if not (self._marks_prompts and self._marks):
            return
        turns = [turn["content"] for turn in body["messages"] if turn["role"] == "user"][-2:]
        for blocks in ([body["system"]] if body["system"] else []) + turns:
            blocks += self.mark(Cache())
        cache_breakpoints.note_added("marks after the system prompt and the last turns", self._notices)

    def mark(self, cache: Cache | None) -> list[Obj]:
        """A cache point, which stands after the block that it marks."""
        if cache is None or not self._marks:
            return []
        self._marks -= 1
        long = self._cache_times and cache.ttl == "1h"
        return [{"cachePoint": {"type": "default"} | ({"ttl": "1h"} if long else {})}]

    def mark_tool(self, cache: Cache | None) -> list[Obj]:
        """A cache point after a tool."""
        return self.mark(cache) if self._marks_tools else []

    def _blocks(self, parts: Sequence[Part]) -> list[Obj]:
        blocks: list[Obj] = []
        for part in parts:
            blocks.append(self._block(part))
            if isinstance(part, (Text, Media, ToolCall, ToolResult)):
                blocks += self.mark(part.cache)
        if any("document" in block for block in blocks) and not any("text" in block for block in blocks):
            blocks.insert(0, {"text": PLACEHOLDER})  # Converse refuses a document without any words
        return blocks

    def _block(self, part: Part) -> Obj:
        if isinstance(part, ToolCall):
            return {
                "toolUse": {
                    "toolUseId": self._ids.call(part.id),
                    "name": self._names.out(part.name, part.namespace),
                    "input": arguments_object(part, self._notices),
                }
            }
        if isinstance(part, ToolResult):
            return {"toolResult": self._result(part)}
        if isinstance(part, Thinking):
            return {"reasoningContent": _thought(part)}
        if isinstance(part, Media):
            return self._media(part)
        assert isinstance(part, Text)  # `ContentFilter` lets nothing else pass
        return {"text": part.text}

    def _result(self, result: ToolResult) -> Obj:
        content = [self._block(part) for part in result.parts]
        if result.is_error and not content:
            content = [{"text": FAILED_SILENTLY}]
        written: Obj = {"toolUseId": self._ids.result(result.call_id), "content": content}
        return written | {"status": "error"} if result.is_error else written

    def _media(self, media: Media) -> Obj:
        source: Obj = {"s3Location": {"uri": media.url}} if media.data is None else {"bytes": media.data}
        block: Obj = {"format": FORMATS[media.kind][media.media_type], "source": source}
        if media.kind == "document":
            # Required, and unique within a request.
            block["name"] = self._document_name(media.name or "")
            block |= {"context": media.context} if media.context else {}
        return {media.kind: block}

    def _document_name(self, given: str) -> str:
        """A name that no other document of the request has, of the characters that names may have."""
        name = base = " ".join(_IN_NAMES.sub(" ", given)[:_MAX_NAME_LENGTH].split()) or "document"
        number = len(self._documents)
        while name in self._documents:
            number += 1
            name = f"{base[: _MAX_NAME_LENGTH - 8].rstrip()} {number}"
        self._documents.add(name)
        return name


def _thought(thinking: Thinking) -> Obj:
    seal = thinking.seal
    assert seal is not None  # `ContentFilter` lets no other thoughts pass
    if seal.redacted:
        return {"redactedContent": seal.data}
    return {"reasoningText": {"text": thinking.text, "signature": seal.data}}
