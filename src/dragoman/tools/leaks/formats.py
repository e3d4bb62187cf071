"""The table of formats in which models write tool calls as text.

A format says how a block opens (literal marks, and what must follow them), how it ends, and which reader
reads the text between. To add a format, add an entry to a module in `families/`.
"""

from __future__ import annotations

from .families.bare import BARE
from .families.channels import CHANNELS
from .families.frames import FRAMES
from .families.json_marks import JSON_MARKS
from .families.markup import MARKUP
from .families.tokens import TOKENS
from .heads import LeakFormat

FORMATS: tuple[LeakFormat, ...] = (*JSON_MARKS, *MARKUP, *TOKENS, *CHANNELS, *BARE, *FRAMES)
