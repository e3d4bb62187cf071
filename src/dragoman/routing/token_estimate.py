"""Estimate the number of tokens of a prompt from its characters, without a tokenizer.

A letter is a fifth of a token, a digit nearly a whole one, and so on. The weights are fitted to four
tokenizers (o200k, cl100k, Mistral's tekken, Qwen's); docs/explanation/token-estimates.md shows the errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..model.messages import Media, Part, Refusal, Request, Text, Thinking, Tool, ToolCall, ToolResult

_DIGITS = b"0123456789"
_WHITESPACE = b" \t\r\n"
_PUNCTUATION = bytes(code for code in range(33, 127) if not chr(code).isalnum())
_NON_ASCII = bytes(range(128, 256))
# Tokens per byte of each kind. Characters of other scripts have two or three bytes.
_WEIGHTS = ((_DIGITS, 0.85), (_PUNCTUATION, 0.44), (_WHITESPACE, 0.0), (_NON_ASCII, 0.21))
_LETTER = 0.19
# A space between words counts once. Indentation counts with its newline: tokenizers merge long whitespace.
_WORD = 0.33
_LINE = 1.25
_MEDIA = 1_500
_MESSAGE = 4


def prompt_tokens(request: Request) -> int:
    """The estimate for a whole request. Takes about 10 ms per megabyte."""
    texts = _all_texts(request)
    media = sum(_media_count(part) for message in request.messages for part in message.parts)
    return round(text_tokens("".join(texts))) + media * _MEDIA + _MESSAGE * len(request.messages)


def parts_tokens(parts: Sequence[Part]) -> float:
    """The estimate for the parts of a message or an answer."""
    texts: list[str] = []
    _add_texts(parts, texts)
    return text_tokens("".join(texts)) + _MEDIA * sum(map(_media_count, parts))


def prompt_length(request: Request) -> int:
    """The number of characters."""
    return sum(map(len, _all_texts(request)))


def text_tokens(text: str) -> float:
    """The estimate for one text.

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


def _all_texts(request: Request) -> list[str]:
    texts: list[str] = []
    for message in request.messages:
        _add_texts(message.parts, texts)
    if request.tools:
        texts.append(_tools_json(request.tools))
    return texts


def _tools_json(tools: Iterable[Tool]) -> str:
    """Names, descriptions and schemas of the tools, as JSON."""
    described = [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in tools]
    return msgspec.json.encode(described).decode()


def _add_texts(parts: Iterable[Part], texts: list[str]) -> None:
    for part in parts:
        # Compare types directly: `match` goes through the struct's metaclass and takes several times as long.
        if type(part) is Text or type(part) is Thinking or type(part) is Refusal:
            texts.append(part.text)
        elif type(part) is ToolCall:
            texts += (part.name, part.arguments)
        elif type(part) is ToolResult:
            _add_texts(part.parts, texts)
        elif type(part) is Media:
            texts.append(part.text or "")


def _media_count(part: Part) -> int:
    if isinstance(part, ToolResult):
        return sum(map(_media_count, part.parts))
    return int(isinstance(part, Media))
