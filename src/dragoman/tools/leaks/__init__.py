"""Finds tool calls that a model wrote as text, and takes them out of the text while it streams."""

from .catalog import Catalog
from .filter import FrameTokens, LeakedCall, LeakFilter, Segment, is_untriggered

__all__ = [
    "Catalog",
    "FrameTokens",
    "LeakFilter",
    "LeakedCall",
    "Segment",
    "is_untriggered",
]
