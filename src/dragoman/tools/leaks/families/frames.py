"""Tokens around messages of words, in the formats in which every message has such tokens.

They say nothing. They are taken out where an answer begins or goes on after a call, and between two
messages of words. What ends the last message is an end token (`ends`).
"""

from __future__ import annotations

from ..heads import Format, Head, Step
from .parts import SPACE


def _frames(
    name: str,
    models: str,
    shape: str,
    ends: tuple[tuple[Step, ...], ...],
    begins: tuple[tuple[Step, ...], ...],
) -> tuple[Format, Format]:
    """What begins a message; and the same behind what ends the message before it."""
    both = tuple(Head((*end, SPACE, *begin)) for end in ends for begin in begins[:1])
    return (
        Format(
            name=f"{name}-words",
            models=models,
            shape=shape,
            heads=tuple(map(Head, begins)),
            read=None,
            place="message",
        ),
        Format(name=f"{name}-seam", models=models, shape=shape, heads=both, read=None),
    )


_WHOM: tuple[Step, ...] = (("user<|message|>", "self<|message|>"),)

FRAMES: tuple[Format, ...] = (
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
        begins=((("<|start|>",), ("assistant to=",), *_WHOM), (("to=",), *_WHOM)),
    ),
)
