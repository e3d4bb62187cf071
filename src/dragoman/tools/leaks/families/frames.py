"""Tokens around messages of text, for models that put tokens around every message.

They carry no text. They are removed at the beginning of an answer, after a call, and between two messages
of text. The tokens after the last message are end tokens (`end_tokens.py`).
"""

from __future__ import annotations

from ..heads import Head, LeakFormat, Step
from .parts import SPACE


def _frames(
    name: str,
    models: str,
    shape: str,
    ends: tuple[tuple[Step, ...], ...],
    begins: tuple[tuple[Step, ...], ...],
) -> tuple[LeakFormat, LeakFormat]:
    """Two formats: the begin of a message, and the end of a message with the begin of the next."""
    both = tuple(Head((*end, SPACE, *begin)) for end in ends for begin in begins[:1])
    return (
        LeakFormat(
            name=f"{name}-words",
            models=models,
            shape=shape,
            heads=tuple(map(Head, begins)),
            read=None,
            place="message",
        ),
        LeakFormat(name=f"{name}-seam", models=models, shape=shape, heads=both, read=None),
    )


_RECIPIENT: tuple[Step, ...] = (("user<|message|>", "self<|message|>"),)

FRAMES: tuple[LeakFormat, ...] = (
    *_frames(
        "inkling",
        "Inkling",
        "<|message_model|><|content_text|>",
        ends=((("<|end_message|>",),),),
        begins=((("<|message_model|>",), ("<|content_text|>",)), (("<|content_text|>",),)),
    ),
    *_frames(
        "cohere",
        "Command",
        "<|START_RESPONSE|>",
        ends=((("<|END_RESPONSE|>", "<|END_TEXT|>"),),),
        begins=((("<|START_RESPONSE|>", "<|START_TEXT|>"),),),
    ),
    *_frames(
        "kimi-k3",
        "Kimi K3",
        "<|open|>response<|sep|>",
        ends=((("<|close|>",), ("response<|sep|>",)),),
        begins=((("<|open|>",), ("response<|sep|>",)),),
    ),
    *_frames(
        "muse",
        "Muse Glimmer",
        "<|start|>assistant to=user<|message|>",
        ends=((("<|eom|>",),),),
        begins=((("<|start|>",), ("assistant to=",), *_RECIPIENT), (("to=",), *_RECIPIENT)),
    ),
)
