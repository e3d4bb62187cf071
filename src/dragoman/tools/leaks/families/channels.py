"""Formats in which a message names its recipient: OpenAI's harmony."""

from __future__ import annotations

from ..heads import NAME, Head, LeakFormat, Step
from ..readers import read_arguments
from .parts import SPACE

_MESSAGE: tuple[Step, ...] = (
    SPACE, ("<|constrain|>", ""), ("json", "code", ""), SPACE, ("<|message|>", ""), SPACE,
)  # fmt: skip
_CHANNEL = ("commentary", "analysis")
_CLOSERS = (("<|call|>", "<|end|>"),)

CHANNELS: tuple[LeakFormat, ...] = (
    LeakFormat(
        name="harmony",
        models="gpt-oss",
        shape="<|channel|>commentary to=functions.name<|message|>{…}<|call|>",
        heads=(
            *(
                Head((*start, _CHANNEL, SPACE, ("to=",), NAME, *_MESSAGE), ("{",))
                for start in ((("<|channel|>",),), (("<|start|>",), ("assistant<|channel|>",)))
            ),
            Head(
                (
                    ("<|start|>",),
                    ("assistant to=",),
                    NAME,
                    SPACE,
                    ("<|channel|>",),
                    _CHANNEL,
                    *_MESSAGE,
                ),
                ("{",),
            ),
        ),
        read=read_arguments,
        closers=_CLOSERS,
    ),
    LeakFormat(  # a server removed the tokens, but did not read the calls
        name="harmony-stripped",
        models="gpt-oss",
        shape="commentary to=functions.name json{…}",
        heads=(
            Head(
                (("assistantcommentary to=", "commentary to=", "to=functions."), NAME, *_MESSAGE),
                ("{",),
            ),
        ),
        read=read_arguments,
        closers=_CLOSERS,
        place="line",
    ),
)
