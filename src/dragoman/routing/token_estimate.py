"""How many tokens a prompt is, about: from what its characters are, without any tokenizer.

A letter is a fifth of a token, a digit nearly a whole one, and so on. The weights are fitted to four
tokenizers (o200k, cl100k, Mistral's tekken, Qwen's); docs/explanation/token-estimates.md has what came out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ..model.messages import Media, Part, Refusal, Request, Text, Thinking, Tool, ToolCall, ToolResult

_DIGITS = b"0123456789"
_BLANKS = b" \t\r\n"
_SIGNS = bytes(code for code in range(33, 127) if not chr(code).isalnum())
_FOREIGN = bytes(range(128, 256))
# Tokens for each byte of a kind; those of other scripts are two or three bytes a character.
_WEIGHTS = ((_DIGITS, 0.85), (_SIGNS, 0.44), (_BLANKS, 0.0), (_FOREIGN, 0.21))
_LETTER = 0.19
# Blanks count once each between words, and hardly where they indent: that belongs to the line's end.
_WORD = 0.33
_LINE = 1.25
_MEDIA = 1_500
_MESSAGE = 4


def prompt_tokens(request: Request) -> int:
    """The estimate. Takes some 10 ms for a megabyte."""
    texts = list(_texts(request))
    media = sum(_media(part) for message in request.messages for part in message.parts)
    return round(text_tokens("".join(texts))) + media * _MEDIA + _MESSAGE * len(request.messages)


def prompt_length(request: Request) -> int:
    """How many characters it has."""
    return sum(map(len, _texts(request)))


def text_tokens(text: str) -> float:
    """About so many tokens.

    >>> round(text_tokens("The quick brown fox jumps over the lazy dog."))
    10
    """
    data = text.encode("utf-8", "surrogatepass")
    tokens, letters = 0.0, len(data)
    for kind, weight in _WEIGHTS:
        count = len(data) - len(data.translate(None, kind))
        tokens += count * weight
        letters -= count
    words = data.count(b" ") - 2 * data.count(b"  ")
    return tokens + letters * _LETTER + words * _WORD + data.count(b"\n") * _LINE


def _texts(request: Request) -> Iterator[str]:
    for message in request.messages:
        for part in message.parts:
            yield from _of(part)
    if request.tools:
        yield _described(request.tools)


def _described(tools: Iterable[Tool]) -> str:
    """What the tools say of themselves, as JSON."""
    said = [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in tools]
    return msgspec.json.encode(said).decode()


def _of(part: Part) -> Iterator[str]:
    match part:
        case Text(text) | Refusal(text) | Thinking(text):
            yield text
        case ToolCall():
            yield part.name
            yield part.arguments
        case ToolResult(parts=parts):
            for inner in parts:
                yield from _of(inner)
        case Media():
            yield part.text or ""
        case _:
            pass


def _media(part: Part) -> int:
    if isinstance(part, ToolResult):
        return sum(map(_media, part.parts))
    return int(isinstance(part, Media))
