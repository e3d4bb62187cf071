"""Write a conversation as Responses input items.

An item of a Responses client is copied as it came. Any other message is written from its parts: text, calls,
results and thoughts of one message become separate items, with the unknown members of a client's item.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec

from ....model.errors import BadRequest
from ....model.messages import (
    Cache,
    Citation,
    Media,
    Message,
    Opaque,
    Part,
    Raw,
    Refusal,
    Seal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    members_for,
    plain_text,
)
from ...base import Target
from ...common import inline_media
from ...common.cache_breakpoints import openai_mark, trim_openai_marks
from ...common.call_ids import UniqueIds
from ...common.fields import Obj
from ...common.notices import Notices
from ...common.tool_names import ToolNames
from ...common.turns import marked_parts, missing_result, note_prefill
from ...common.typed_json import LazyArray, opens_string, unchanged_array, value
from ..own import IDS, NAME, call_id_key, goes_back, is_own, summary_texts
from .wire import TEXT_TYPES
from .write_tools import Placed

_FILE_DETAILS = ("low", "high", "auto")
_TEXT = frozenset({Text})
_PAIRED = frozenset({ToolCall, ToolResult})
_UNSEEN = Thinking()
_ITEM_IDS = {"function": "fc_", "custom": "ctc_"}
_FROM_MODEL = ("reasoning", "function_call", "custom_tool_call")
# The id of an item in an answer, for the encoder. It is no member of an item.
_ANSWERED_ITEM = "item_id"


class ItemWriter:
    """Writes the messages of one request."""

    def __init__(
        self,
        messages: Sequence[Message],
        target: Target,
        names: ToolNames,
        notices: Notices,
        *,
        own: bool,
    ) -> None:
        """`own`: the conversation is a Responses client's. Then nothing is added to it."""
        self._messages = messages
        self._own = own
        self._target = target
        self._names = names
        self._notices = notices
        self._parts = PartWriter(notices, own=own)
        self._ids = UniqueIds(target.ids or IDS)
        self._items: list[Any] = []
        self._has_reasoning = False
        self._kinds: dict[str, str] = {}
        """Whether a call is freeform. In other protocols, only the call shows that, and not its result."""

    def items(self, first: int, between: Sequence[Placed]) -> list[Any] | msgspec.Raw:
        """Write the messages from `first` on, with finished items `between` them."""
        whole = self._unchanged(first, between)
        if whole is not None:
            return whole
        unanswered = self._unanswered()
        waiting: list[ToolCall] = []
        finished = deque(between)
        for index, message in enumerate(self._messages[first:], first):
            while finished and finished[0].before <= index - first:
                self._items.append(finished.popleft().item)
            if is_own(message.raw):
                self._copy(message, message.raw)
                continue
            if waiting and message.role != "assistant":
                for call in waiting:
                    self._add_result(missing_result(call, self._notices), index)
                waiting = []
            self._write(message, index)
            if unanswered:
                calls = (part for part in message.parts if isinstance(part, ToolCall))
                waiting += [call for call in calls if call.id in unanswered]
        self._items += [placed.item for placed in finished]
        return self._spaced() if self._own else self._completed()

    def _unchanged(self, first: int, between: Sequence[Placed]) -> msgspec.Raw | None:
        """The client's own `input`, if it is sent as it came."""
        if self._target.takes.reasons is False:
            return None  # there may be reasoning to leave out
        raws = [message.raw for message in self._messages[first:]]
        for placed in reversed(between):
            raws.insert(placed.before, placed.raw)
        first_raw = raws[0] if raws else None
        if not is_own(first_raw):
            return None
        alone = len(raws) == 1 and opens_string(first_raw.value)
        return first_raw.value if alone else unchanged_array(raws)

    def _unanswered(self) -> set[str]:
        """The ids of calls that get a result which says that there is none."""
        paired = [p for m in self._messages for p in m.parts if type(p) in _PAIRED]
        self._kinds = {p.id: p.kind for p in paired if type(p) is ToolCall}
        if self._own:
            return set()  # a Responses client's conversation may be stored in part
        return self._kinds.keys() - {p.call_id for p in paired if type(p) is ToolResult}

    def _spaced(self) -> list[Any] | msgspec.Raw:
        """The items of a Responses client, with its white space: a prompt cache compares the beginning."""
        for message in self._messages:
            if message.raw is not None and isinstance(message.raw.held, LazyArray):
                return message.raw.held.spaced(self._items)
        return self._items

    def _completed(self) -> list[Any]:
        """The items of another protocol's conversation, as this protocol wants them."""
        note_prefill(self._messages, self._notices)
        trim_openai_marks(self._parts.marked, self._notices)
        return _without_lone_reasoning(self._items) if self._has_reasoning else self._items

    def _copy(self, message: Message, raw: Raw) -> None:
        """Add the client's item as it came. The seal of a call comes before it."""
        for part in message.parts:
            if type(part) is ToolCall:
                self._add_reasoning(_UNSEEN, part.seal)
            elif type(part) is Thinking and self._target.takes.reasons is False:
                return  # the model refuses reasoning
        item = raw.value
        if opens_string(item):
            item = {"type": "message", "role": "user", "content": item}
        self._items.append(item)

    def _write(self, message: Message, index: int) -> None:
        """Write the message at `index`: its text, and its calls, results and thoughts as separate items."""
        if message.name:
            self._notices.warn("message-name-dropped", f"messages[{index}]", "messages cannot carry a name")
        by_model = message.role == "assistant"
        write_text = self._parts.output_text if by_model else self._parts.input_text
        content: list[Obj] = []
        for part in message.parts:
            if type(part) is Text:
                content += [write_text(part, index)] if part.text else []
                continue
            if type(part) is Refusal or type(part) is Media:
                content += self._parts.rare(part, index, by_model=by_model)
                continue
            before = len(self._items)
            self._add(part, index)
            if content and len(self._items) > before:
                self._items.insert(before, _message_item(message, content))
                content = []
        if content:
            self._items.append(_message_item(message, content))
        elif message.role == "user" and _is_silent(message):
            self._items.append(_message_item(message, ""))

    def _add(self, part: Part, index: int) -> None:
        """Write a part of the message at `index` as a separate item."""
        if type(part) is ToolCall:
            self._add_reasoning(_UNSEEN, part.seal)
            self._items.append(self._call(part))
        elif type(part) is ToolResult:
            self._add_result(part, index)
        elif type(part) is Thinking:
            self._add_reasoning(part, part.seal)
        elif type(part) is Opaque and is_own(part.raw):
            self._items.append(part.raw.value if self._own else part.raw.parsed)
        elif type(part) is Opaque:
            message = f"{part.type or 'a part'} of {part.raw.protocol} has no counterpart"
            self._notices.warn("opaque-dropped", f"messages[{index}]", message)

    def _add_reasoning(self, thinking: Thinking, seal: Seal | None) -> None:
        """Return reasoning to its issuer. Without a seal it is dropped; it never becomes text."""
        if seal is not None and goes_back(seal, self._target):
            self._has_reasoning = True
            self._items.append(self._reasoning(thinking, seal))

    def _reasoning(self, thinking: Thinking, seal: Seal) -> Obj:
        item: Obj = {"type": "reasoning"}
        # OpenRouter's ids (`rs_tmp_…`, `gen-…`) and others mean nothing to OpenAI. The id is optional.
        if seal.id and (self._own or seal.id.startswith("rs_")):
            item["id"] = seal.id
        # OpenAI requires `summary`, even if it is empty.
        item["summary"] = summary_texts(text for text in thinking.summaries or (thinking.text,) if text)
        if seal.data:
            item["encrypted_content"] = seal.data
        return item | _beside(thinking)

    def _call(self, call: ToolCall) -> Obj:
        unknown = _beside(call)
        id = self._ids.call(call.id)
        if "type" in unknown:
            return unknown | {"call_id": id}
        custom = call.kind == "custom"
        item: Obj = {"type": "custom_tool_call" if custom else "function_call", "call_id": id}
        if call.namespace:
            item["namespace"] = call.namespace
        item["name"] = self._names.out(call.name, call.namespace)
        if custom:
            item["input"] = call.arguments
        else:
            item["arguments"] = call.arguments or "{}"
        if not self._own and not _fits(unknown.get("id"), call):
            unknown.pop("id", None)
        return item | unknown

    def _add_result(self, result: ToolResult, index: int) -> None:
        unknown = _beside(result)
        id = self._ids.result(result.call_id)
        if "type" in unknown:
            self._items.append(unknown | {call_id_key(value(unknown["type"], ""), unknown): id})
            return
        kind = self._kinds.get(result.call_id, result.kind)
        name = "custom_tool_call_output" if kind == "custom" else "function_call_output"
        output = self._output(result, index)
        self._items.append({"type": name, "call_id": id, "output": output} | unknown)

    def _output(self, result: ToolResult, index: int) -> str | list[Obj]:
        """Write an output: text as a string, which every server accepts; a list only if necessary.

        A string cannot hold a cache breakpoint, so the breakpoint is dropped. Agents move the breakpoint with
        every turn, and a string that becomes a list and a string again would change the cached prefix.
        """
        parts = marked_parts(result)
        # A text with members of its own came as a part of a list, and stays one.
        if _TEXT.issuperset(map(type, parts)) and not any(part.extras for part in parts):
            return plain_text(parts)
        return [self._parts.input(part, index) for part in parts]


def _is_silent(message: Message) -> bool:
    """Is this an empty prompt, as a client sends it to let the model begin?"""
    return not any(type(part) is not Text or part.text for part in message.parts)


def _message_item(message: Message, content: list[Obj] | str) -> Obj:
    return {"type": "message", "role": message.role, "content": content}


def _beside(part: Thinking | ToolCall | ToolResult) -> Obj:
    """The members of a Responses client's item that its neutral form does not hold. All, if `type` is one."""
    members = members_for(NAME, part.extras)
    return {key: given for key, given in members.items() if key != _ANSWERED_ITEM}


def _fits(id: Any, call: ToolCall) -> bool:
    """Is this an item id for a call of this kind? OpenAI refuses another prefix, and requires no id."""
    return isinstance(id, str) and id.startswith(_ITEM_IDS[call.kind]) and len(id) <= IDS.max_length


def _without_lone_reasoning(items: list[Obj]) -> list[Obj]:
    """Remove reasoning that no item of the model follows: OpenAI refuses it with a 400 (continue#8933).

    It occurs if the call or the text after it could not be sent.
    """
    kept: list[Obj] = []
    for item in reversed(items):
        following = kept[-1] if kept else {}
        by_model = following.get("type") in _FROM_MODEL or following.get("role") == "assistant"
        if by_model or item.get("type") != "reasoning":
            kept.append(item)
    return kept[::-1]


class PartWriter:
    """Writes the parts of one request. `index` is the index of a part's message."""

    def __init__(self, notices: Notices, *, own: bool) -> None:
        self._notices = notices
        self._own = own
        self.marked: list[Obj] = []
        """The parts with a cache breakpoint, in order."""

    def output_text(self, text: Text, index: int) -> Obj:
        """Write text of the model."""
        annotations: list[Obj] = []
        for citation in text.citations:
            annotation = self._annotation(citation, text, index)
            annotations += [annotation] if annotation else []
        # Assistant text is `output_text`: OpenAI refuses `input_text` in an assistant message.
        return {"type": "output_text", "text": text.text, "annotations": annotations}

    def input_text(self, text: Text, index: int) -> Obj:
        """Write text of the user or of a tool."""
        if text.citations:
            self._drop_citations(index)
        members = members_for(NAME, text.extras)
        if "type" in members and value(members["type"], "") not in TEXT_TYPES:
            return members  # a part that only this protocol knows
        if members:
            return {"type": "input_text", "text": text.text, **members}
        return self._marked({"type": "input_text", "text": text.text}, text.cache)

    def rare(self, part: Refusal | Media, index: int, *, by_model: bool) -> list[Obj]:
        """Write a part other than text. An empty list if it is dropped."""
        if isinstance(part, Refusal):
            if not part.text:
                return []
            # Only assistant messages can hold a refusal. In others it becomes text.
            words = {"type": "refusal", "refusal": part.text}
            return [words if by_model else self.input_text(Text(part.text), index)]
        if not by_model:
            return [self.input(part, index)]
        message = f"a {part.kind} made by a model cannot be sent back"
        self._notices.warn("assistant-media-dropped", _path(index), message)
        return []

    def input(self, part: Text | Media, index: int) -> Obj:
        """Write a part of a user message, or of a tool's output."""
        if isinstance(part, Text):
            return self.input_text(part, index)
        if self._own and is_own(part.raw):
            return part.raw.value
        where = _path(index)
        if part.kind == "image":
            return self._image(part, where)
        if part.kind == "document":
            return self._document(part, where)
        raise BadRequest(f"openai-responses does not accept {part.kind} as input", where)

    def _marked(self, part: Obj, cache: Cache | None) -> Obj:
        if cache is not None:
            part |= openai_mark(cache)
            self.marked.append(part)
        return part

    def _annotation(self, citation: Citation, text: Text, index: int) -> Obj | None:
        if is_own(citation.raw):
            return citation.raw.value
        if not citation.url:
            self._drop_citations(index)
            return None
        return {
            "type": "url_citation",
            "start_index": citation.start or 0,
            "end_index": len(text.text) if citation.end is None else citation.end,
            "url": citation.url,
            "title": citation.title,
        }

    def _drop_citations(self, index: int) -> None:
        message = "only citations of web pages by the model can be sent"
        self._notices.warn("citations-dropped", _path(index), message)

    def _image(self, image: Media, where: str) -> Obj:
        address = inline_media.address(image)
        source = {"image_url": address} if address else self._file_id(image, where)
        detail = image.detail if image.detail in inline_media.IMAGE_DETAILS else "auto"
        return self._marked({"type": "input_image", "detail": detail, **source}, image.cache)

    def _document(self, document: Media, where: str) -> Obj:
        if document.context:
            message = "a document's context cannot be sent"
            self._notices.warn("document-details-dropped", where, message)
        words = inline_media.text_of(document, where)
        if words is not None:
            words = inline_media.titled(document, words)
            return self._marked({"type": "input_text", "text": words}, document.cache)
        result = {"type": "input_file", **self._file(document, where)}
        if document.detail in _FILE_DETAILS:
            result["detail"] = document.detail
        return self._marked(result, document.cache)

    def _file(self, document: Media, where: str) -> Obj:
        if document.data is not None:
            name = inline_media.file_name(document)
            return {"filename": name, "file_data": inline_media.address(document)}
        if document.url is not None:
            return {"file_url": document.url}
        return self._file_id(document, where)

    def _file_id(self, media: Media, where: str) -> Obj:
        if media.file_id is None or media.file_provider != inline_media.OPENAI:
            raise inline_media.lone_file(media, where)
        return {"file_id": media.file_id}


def _path(index: int) -> str:
    return f"messages[{index}]"
