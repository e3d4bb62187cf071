"""The special tokens that end a turn, when a server forgets to take them out of the text.

They are removed where they can mean nothing else: at the very end of the answer.
"""

from __future__ import annotations

import re
from itertools import product


def spelled(token: str) -> tuple[str, ...]:
    """DeepSeek's tokens as they come: with full-width or plain bars, low blocks or underscores."""
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
    "<|user|>",  # GLM ends a turn with the next speaker
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
_STRIKE = "<s>"  # HTML: then </s> closes it


def _prefixes(*tokens: str) -> frozenset[str]:
    return frozenset(token[:size] for token in tokens for size in range(1, len(token)))


def _run(tokens: tuple[str, ...]) -> str:
    return rf"(?:(?:{'|'.join(map(re.escape, tokens))})\s*+)"


END_PREFIXES = _prefixes(*END_TOKENS)
# What may stand after the last call of an answer without being an answer.
NOTHING = re.compile(rf"(?:\s++|{_run(END_TOKENS)})*+")

_HELD = END_PREFIXES | _prefixes(_STRIKE)
_LONGEST = max(map(len, END_TOKENS))
_RUN = re.compile(f"{_run(END_TOKENS)}++")
_RUN_BUT_STRIKE = re.compile(f"{_run(END_TOKENS[:-1])}++")


def before_end_tokens(text: str) -> int:
    """Where the end tokens and blanks begin that the text ends with."""
    end, token = len(text), ""
    while True:
        end -= len(token)
        while end and text[end - 1].isspace():
            end -= 1
        token = next((token for token in END_TOKENS if text.endswith(token, 0, end)), "")
        if not token:
            return end


class EndTokens:
    """Passes text on, keeping back what may be the answer's last tokens; `close` drops them."""

    __slots__ = ("_pattern", "_run", "_tail")

    def __init__(self) -> None:
        self._run: list[str] = []  # complete tokens, up to the end of what came
        self._tail = ""  # what may become one
        self._pattern = _RUN

    @property
    def holding(self) -> bool:
        return bool(self._run or self._tail)

    def feed(self, text: str) -> str:
        """What of the text so far is certainly not among the answer's last tokens."""
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
        """`body` if it only goes on with the run (further tokens, blanks between them)."""
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
        """Everything held, as text: something follows that makes it no end."""
        tail, self._tail = self._tail, ""
        return self._take_run() + tail

    def close(self) -> tuple[str, str]:
        """At the end of the answer: what is text after all, and the tokens that are dropped."""
        if self._tail:
            return self.flush(), ""
        return "", self._take_run()
