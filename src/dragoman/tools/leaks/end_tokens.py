"""Special tokens that end a turn, for servers that leave them in the text.

They are removed only at the very end of the answer: elsewhere they may be part of the text.
"""

from __future__ import annotations

import re
from itertools import product


def spelled(token: str) -> tuple[str, ...]:
    """All spellings of a DeepSeek token: with full-width or plain bars, with low blocks or underscores."""
    return tuple(
        dict.fromkeys(token.replace("|", bar).replace("_", low) for bar, low in product("\uff5c|", "\u2581_"))
    )


END_TOKENS = (
    "<|im_end|>",  # ChatML: Qwen, Yi, Hermes
    "<|endoftext|>",
    "<|end_of_text|>",  # Granite, Llama base models
    "<|eot_id|>",  # Llama 3
    "<|eom_id|>",
    "<|eot|>",  # Llama 4
    "<|eom|>",
    "<|end|>",  # Phi, harmony
    "<|return|>",  # harmony
    "<|call|>",
    "<|user|>",  # GLM ends a turn with the token of the next speaker
    "<|observation|>",
    "<|END_OF_TURN_TOKEN|>",  # Command
    "<|END_RESPONSE|>",
    "<|END_TEXT|>",
    "<|end_of_turn|>",
    "<end_of_turn>",  # Gemma
    "<turn|>",
    "<eos>",
    *spelled("<|end_of_sentence|>"),  # DeepSeek
    "<|end_message|>",  # Inkling
    "<|content_model_end_sampling|>",
    "<|close|>response<|sep|>",  # Kimi K3
    "<|close|>message<|sep|>",
    "<|end_of_msg|>",
    "<|message_sep|>",  # GigaChat
    "</s>",  # Mistral, Llama 2
)
_STRIKE = "<s>"  # the HTML tag: `</s>` then closes it and is no end token


def _prefixes(*tokens: str) -> frozenset[str]:
    return frozenset(token[:size] for token in tokens for size in range(1, len(token)))


def _run(tokens: tuple[str, ...]) -> str:
    return rf"(?:(?:{'|'.join(map(re.escape, tokens))})\s*+)"


END_PREFIXES = _prefixes(*END_TOKENS)
# Text after the last call of an answer that is no answer.
NOTHING = re.compile(rf"(?:\s++|{_run(END_TOKENS)})*+")

_HELD = END_PREFIXES | _prefixes(_STRIKE)
_LONGEST = max(map(len, END_TOKENS))
_RUN = re.compile(f"{_run(END_TOKENS)}++")
_RUN_BUT_STRIKE = re.compile(f"{_run(END_TOKENS[:-1])}++")


def before_end_tokens(text: str) -> int:
    """The position of the end tokens and blanks at the end of the text."""
    end, token = len(text), ""
    while True:
        end -= len(token)
        while end and text[end - 1].isspace():
            end -= 1
        token = next((token for token in END_TOKENS if text.endswith(token, 0, end)), "")
        if not token:
            return end


class EndTokens:
    """Passes text on, but holds tokens that may end the answer. `close` drops them."""

    __slots__ = ("_pattern", "_run", "_tail")

    def __init__(self) -> None:
        self._run: list[str] = []  # complete tokens at the end of the text so far
        self._tail = ""  # text that may become a token
        self._pattern = _RUN

    @property
    def holding(self) -> bool:
        return bool(self._run or self._tail)

    def feed(self, text: str) -> str:
        """The text that certainly is not among the last tokens of the answer."""
        if not self._run and not self._tail and "<" not in text:
            return text
        text = self._tail + text
        if _STRIKE in text:
            self._pattern = _RUN_BUT_STRIKE
        start = self._tail_start(text)
        self._tail, body = text[start:], text[:start]
        if self._run and (more := self._continued(body)):
            self._run.append(more)
            return ""
        run = next((m for m in self._pattern.finditer(body) if m.end() == len(body)), None)
        if run is None:
            return self._take_run() + body if body else ""
        released = self._take_run() + body[: run.start()]
        self._run.append(run.group())
        return released

    def _continued(self, body: str) -> str:
        """`body` if it only continues the run, with tokens and blanks. Otherwise empty."""
        blank = len(body) - len(body.lstrip())
        run = self._pattern.match(body, blank)
        return body if blank == len(body) or (run and run.end() == len(body)) else ""

    @staticmethod
    def _tail_start(text: str) -> int:
        start = text.find("<", max(0, len(text) - _LONGEST))
        while start >= 0 and text[start:] not in _HELD:
            start = text.find("<", start + 1)
        return start if start >= 0 else len(text)

    def _take_run(self) -> str:
        run = "".join(self._run)
        self._run.clear()
        return run

    def flush(self) -> str:
        """All held text: a call follows, so the tokens do not end the answer."""
        tail, self._tail = self._tail, ""
        return self._take_run() + tail

    def close(self) -> tuple[str, str]:
        """The answer is over. Return held text that is no token, and the tokens that are dropped."""
        if self._tail:
            return self.flush(), ""
        return "", self._take_run()
