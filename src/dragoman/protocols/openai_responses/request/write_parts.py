"""Write text, images, documents and audio as content parts of a Responses item."""

from __future__ import annotations

from ....model.errors import BadRequest
from ....model.messages import Cache, Citation, Media, Refusal, Text
from ...common import inline_media
from ...common.cache_breakpoints import openai_mark
from ...common.fields import Obj
from ...common.notices import Notices
from ..own import is_own

_FILE_DETAILS = ("low", "high", "auto")


class PartWriter:
    """Writes the parts of one request. `index` is the index of a part's message."""

    def __init__(self, notices: Notices) -> None:
        self.notices = notices
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
        self.notices.warn("assistant-media-dropped", _path(index), message)
        return []

    def input(self, part: Text | Media, index: int) -> Obj:
        """Write a part of a user message, or of a tool's output."""
        if isinstance(part, Text):
            return self.input_text(part, index)
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
        self.notices.warn("citations-dropped", _path(index), message)

    def _image(self, image: Media, where: str) -> Obj:
        address = inline_media.address(image)
        source = {"image_url": address} if address else self._file_id(image, where)
        detail = image.detail if image.detail in inline_media.IMAGE_DETAILS else "auto"
        return self._marked({"type": "input_image", "detail": detail, **source}, image.cache)

    def _document(self, document: Media, where: str) -> Obj:
        if document.context:
            message = "a document's context cannot be sent"
            self.notices.warn("document-details-dropped", where, message)
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
