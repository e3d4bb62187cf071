"""Read single members of Chat answers: token counts, citations, errors, signatures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ....model.errors import UpstreamError
from ....model.events import Failed, Usage, UsageSeen
from ....model.messages import Citation, Seal
from ....wire.frames import Frame
from ...common import failures
from ...common.fields import Obj, is_array, is_object
from ..own import NAME


class TokenDetails(msgspec.Struct, gc=False):
    """More about one of the counts."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class ChatUsage(msgspec.Struct, gc=False):
    """The token counts that are understood."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None


def read_failure(chunk: Obj, frame: Frame) -> Failed | None:
    """Read an error in an answer with status 200. OpenAI sends `error` in a frame.

    MiniMax sends `base_resp`, Groq the SSE event `error`, Mistral `"object": "error"`. OpenRouter sends
    `error` beside `choices` with the finish reason `error`. Such an answer must not end as a success.
    """
    if chunk.get("error"):
        return failures.from_error(chunk["error"])
    base = chunk.get("base_resp")
    if is_object(base) and base.get("status_code"):
        return failures.from_error(base)
    # Servers answer so even with status 200: FastAPI with `detail`, Cloudflare with a list of `errors`.
    bare = not any(chunk.get(key) for key in ("id", "object", "choices", "usage", "model", "x_groq"))
    said = bare and any(chunk.get(key) for key in ("message", "detail", "msg", "errors"))
    if frame.event == "error" or chunk.get("object") == "error" or said:
        return failures.from_body(None, frame.data)
    return None


def read_usage(given: Obj) -> Usage:
    """Read token counts. OpenAI's prompt count includes cached tokens, the neutral one does not."""
    try:
        usage = msgspec.convert(given, ChatUsage, strict=False)
    except msgspec.ValidationError as error:
        raise UpstreamError(f"the upstream sent an event that cannot be read: {error}") from None
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    cached = usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens
    written = usage.prompt_tokens_details and usage.prompt_tokens_details.cache_write_tokens
    if prompt is not None and written and (cached or 0) + written > prompt:
        written = max(0, prompt - (cached or 0))  # OpenRouter counts Gemini's cached tokens as written, too
    details = usage.completion_tokens_details
    reasoning = details.reasoning_tokens if details else None
    apart = reasoning and usage.total_tokens == (prompt or 0) + (completion or 0) + reasoning
    if apart and completion is not None and reasoning is not None:
        completion += reasoning  # xAI excludes reasoning from the completion; the total shows it
    return Usage(
        input=None if prompt is None else max(0, prompt - (cached or 0) - (written or 0)),
        cache_read=cached,
        cache_write=written,
        output=completion,
        reasoning=reasoning,
    )


def counted(chunk: Obj) -> list[UsageSeen]:
    """The token counts in a chunk, if it has any."""
    usage: Any = chunk.get("usage")
    if usage is not None and not is_object(usage):
        del chunk["usage"]
        usage = None
    groq = chunk.get("x_groq")
    if not usage and is_object(groq):
        usage = groq.get("usage")  # Groq once sent the usage of a stream only here
    return [UsageSeen(read_usage(usage))] if is_object(usage) and usage else []


def adds_up(usage: Obj) -> bool:
    """Are the counts complete and consistent?"""
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if type(prompt) is not int or type(completion) is not int or min(prompt, completion) < 0:
        return False
    return usage.get("total_tokens") == prompt + completion


def read_citation(note: Any) -> Citation | None:
    """Read an annotation; None if it is not about a web page."""
    source = note.get("url_citation") if is_object(note) else None
    if not is_object(source) or not isinstance(source.get("url"), str):
        return None
    title = str(source.get("title") or "")
    return Citation(source["url"], title, "", source.get("start_index"), source.get("end_index"))


def read_sources(chunk: Obj) -> list[Citation]:
    """The pages that Perplexity's server searched. Every chunk repeats them; older models send only URLs."""
    pages: Any = chunk.get("search_results") or chunk.get("citations")
    found: list[Citation] = []
    for page in pages if is_array(pages) else ():
        url = page.get("url") if is_object(page) else page
        if isinstance(url, str) and url:
            title, text = (page.get("title"), page.get("snippet")) if is_object(page) else ("", "")
            found.append(Citation(url, str(title or ""), str(text or "")))
    return found


def mistral_pieces(content: list[Any]) -> Iterator[tuple[str, bool]]:
    """The texts of content that is a list of pieces, and whether each is reasoning."""
    for piece in content:
        if isinstance(piece, str) and piece:
            yield piece, False
        elif is_object(piece) and isinstance(piece.get("text"), str) and piece["text"]:
            yield piece["text"], False
        elif is_object(piece) and is_array(thinking := piece.get("thinking")):
            texts = [t["text"] for t in thinking if is_object(t) and isinstance(t.get("text"), str)]
            if any(texts):
                yield "".join(texts), True


def google_signature(extra: Any, issuer: str) -> Seal | None:
    """Gemini's OpenAI endpoint signs calls in `extra_content.google.thought_signature`."""
    google = extra.get("google") if is_object(extra) else None
    signature = google.get("thought_signature") if is_object(google) else None
    return Seal(NAME, signature, issuer=issuer) if isinstance(signature, str) else None
