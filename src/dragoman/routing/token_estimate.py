"""How many tokens a prompt is, about: from what its characters are, without any tokenizer.

A letter is a fifth of a token, a digit nearly a whole one, and so on. The weights are fitted to four
tokenizers (o200k, cl100k, Mistral's tekken, Qwen's); docs/explanation/token-estimates.md has what came out.
"""

from __future__ import annotations

from collections.abc import Iterable

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
    texts = _texts(request)
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


def _texts(request: Request) -> list[str]:
    texts: list[str] = []
    for message in request.messages:
        _add(message.parts, texts)
    if request.tools:
        texts.append(_described(request.tools))
    return texts


def _described(tools: Iterable[Tool]) -> str:
    """What the tools say of themselves, as JSON."""
    said = [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in tools]
    return msgspec.json.encode(said).decode()


def _add(parts: Iterable[Part], texts: list[str]) -> None:
    for part in parts:
        # By the type itself: `match` asks a struct's metaclass, and takes several times as long.
        if type(part) is Text or type(part) is Thinking or type(part) is Refusal:
            texts.append(part.text)
        elif type(part) is ToolCall:
            texts += (part.name, part.arguments)
        elif type(part) is ToolResult:
            _add(part.parts, texts)
        elif type(part) is Media:
            texts.append(part.text or "")


def _media(part: Part) -> int:
    if isinstance(part, ToolResult):
        return sum(map(_media, part.parts))
    return int(isinstance(part, Media))
