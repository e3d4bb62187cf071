"""The formats in which models write tool calls as text: one table, one entry each.

A format is how a block opens (literal marks, then what must follow for it to be a block at all),
how it ends, and the reader of what stands between. A new format is a new entry in one of `families`.
"""

from __future__ import annotations

from .families.bare import BARE
from .families.channels import CHANNELS
from .families.json_marks import JSON_MARKS
from .families.markup import MARKUP
from .families.tokens import TOKENS
from .heads import Format

FORMATS: tuple[Format, ...] = (*JSON_MARKS, *MARKUP, *TOKENS, *CHANNELS, *BARE)

# Tokens that begin a message of words, beside messages that call. They say nothing: where an answer
# begins, or goes on after a call, they are taken out.
FRAMES = (
    "<|message_model|><|content_text|>",  # Inkling
    "<|content_text|>",
    "<|open|>response<|sep|>",  # Kimi K3
    "<|start|>assistant to=user<|message|>",  # Muse Glimmer
    "<|start|>assistant to=self<|message|>",
    "to=user<|message|>",
    "to=self<|message|>",
)
