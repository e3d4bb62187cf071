"""The endpoints of OpenAI's API beside Chat and Responses. Both protocols share them."""

from __future__ import annotations

import msgspec

from ...model.events import NO_USAGE, Usage
from ..facts import OtherEndpoint

_ONE = "{id}"
_FILE = ("id", "file.id")
"""A file, or an upload that becomes one."""
_BATCH = ("id", "output_file_id", "error_file_id")


class _Counts(msgspec.Struct):
    """Embeddings and reranking count `prompt_tokens`, images and transcriptions `input_tokens`."""

    prompt_tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    completion_tokens: int | None = None


class _Counted(msgspec.Struct):
    usage: _Counts | None = None


_decode = msgspec.json.Decoder(_Counted).decode


def usage(body: bytes) -> Usage:
    """The token counts in an answer, if it has some."""
    try:
        counts = _decode(body).usage
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NO_USAGE
    if counts is None:
        return NO_USAGE
    prompt = counts.prompt_tokens if counts.input_tokens is None else counts.input_tokens
    output = counts.completion_tokens if counts.output_tokens is None else counts.output_tokens
    return NO_USAGE if prompt is None else Usage(input=prompt, output=output or 0)


def _asking(name: str, path: str) -> OtherEndpoint:
    return OtherEndpoint(name=name, path=path, model="body", usage=usage)


OTHERS = (
    _asking("embeddings", "/embeddings"),
    _asking("moderations", "/moderations"),
    _asking("rerank", "/rerank"),
    _asking("images", "/images/{action:generations|edits|variations}"),
    _asking("audio", "/audio/{action:speech|transcriptions|translations}"),
    OtherEndpoint(name="files", path="/files", methods=("GET", "POST"), names=_FILE, listed="data"),
    OtherEndpoint(name="files", path=f"/files/{_ONE}", methods=("GET", "DELETE"), names=_FILE),
    OtherEndpoint(name="files", path=f"/files/{_ONE}/content", methods=("GET",)),
    OtherEndpoint(name="files", path="/uploads", names=_FILE),
    OtherEndpoint(name="files", path=f"/uploads/{_ONE}/{{action:parts|complete|cancel}}", names=_FILE),
    OtherEndpoint(
        name="batches",
        path="/batches",
        methods=("GET", "POST"),
        names=_BATCH,
        listed="data",
        paid_later=True,
    ),
    OtherEndpoint(name="batches", path=f"/batches/{_ONE}", methods=("GET",), names=_BATCH),
    OtherEndpoint(name="batches", path=f"/batches/{_ONE}/cancel", names=_BATCH),
)
