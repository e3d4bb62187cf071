"""Pictures, documents, sounds and words as parts of a Responses item."""

from __future__ import annotations

from ....errors import BadRequest
from ....messages import Citation, Media, Text
from ... import inline
from ...breakpoints import openai_mark
from ...fields import Obj
from ...notices import Notices
from ..items import NAME

_FILE_DETAILS = ("low", "high", "auto")


class PartWriter:
    """Writes the parts of one request's messages."""

    def __init__(self, notices: Notices, own_files: bool) -> None:
        """`own_files`: the client's file ids are this provider's."""
        self._notices = notices
        self._own_files = own_files

    def input(self, part: Text | Media, where: str) -> Obj:
        """A part of what the client says, or of a tool's output."""
        if isinstance(part, Text):
            return self._input_text(part, where)
        if part.kind == "image":
            return self._image(part, where)
        if part.kind == "document":
            return self._document(part, where)
        if part.kind == "audio":
            return inline.openai_audio(part, where)
        raise BadRequest("openai-responses takes no video", where)

    def output_text(self, text: Text, where: str) -> Obj:
        """What the model said."""
        annotations = [a for c in text.citations if (a := self._annotation(c, text, where))]
        return {"type": "output_text", "text": text.text, "annotations": annotations}

    def _input_text(self, text: Text, where: str) -> Obj:
        if text.citations:
            self._drop_citations(where)
        return {"type": "input_text", "text": text.text, **openai_mark(text.cache)}

    def _annotation(self, citation: Citation, text: Text, where: str) -> Obj | None:
        if citation.raw is not None and citation.raw.protocol == NAME:
            return citation.raw.value
        if not citation.url:
            self._drop_citations(where)
            return None
        return {
            "type": "url_citation",
            "start_index": citation.start or 0,
            "end_index": len(text.text) if citation.end is None else citation.end,
            "url": citation.url,
            "title": citation.title,
        }

    def _drop_citations(self, where: str) -> None:
        self._notices.say("citations-dropped", where, "only citations of web pages by the model can be sent")

    def _image(self, image: Media, where: str) -> Obj:
        address = inline.address(image)
        source = {"image_url": address} if address else self._file_id(image, where)
        detail = image.detail if image.detail in inline.IMAGE_DETAILS else "auto"
        return {"type": "input_image", "detail": detail, **source, **openai_mark(image.cache)}

    def _document(self, document: Media, where: str) -> Obj:
        if document.context:
            message = "a document's context cannot be sent"
            self._notices.say("document-details-dropped", where, message)
        if document.text is not None:
            words = "\n\n".join(filter(None, (document.name, document.text)))
            return {"type": "input_text", "text": words, **openai_mark(document.cache)}
        result = {"type": "input_file", **self._file(document, where)}
        if document.detail in _FILE_DETAILS:
            result["detail"] = document.detail
        return result | openai_mark(document.cache)

    def _file(self, document: Media, where: str) -> Obj:
        if document.data is not None:
            # Inline files are refused without a name.
            return {"filename": document.name or "document.pdf", "file_data": inline.address(document)}
        if document.url is not None:
            return {"file_url": document.url}
        return self._file_id(document, where)

    def _file_id(self, media: Media, where: str) -> Obj:
        if media.file_id is None or not self._own_files:
            raise inline.lone_file(media, where)
        return {"file_id": media.file_id}
