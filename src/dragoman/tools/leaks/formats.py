"""The formats in which models write tool calls as text: one table, one entry each.

A format is how a block opens (literal marks, then what must follow for it to be a block at all),
how it ends, and the reader of what stands between. A new format is a new entry in one of `families`.
"""

from __future__ import annotations

from .families.bare import BARE
from .families.channels import CHANNELS
from .families.frames import FRAMES
from .families.json_marks import JSON_MARKS
from .families.markup import MARKUP
from .families.tokens import TOKENS
from .heads import Format

FORMATS: tuple[Format, ...] = (*JSON_MARKS, *MARKUP, *TOKENS, *CHANNELS, *BARE, *FRAMES)
