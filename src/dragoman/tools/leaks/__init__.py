"""Tool calls that a model wrote as text: found, read and taken out while the text streams."""

from .filter import BEGINNINGS, LeakedCall, LeakFilter, Segment, is_unmarked, is_untriggered
from .values import Catalog

__all__ = [
    "BEGINNINGS",
    "Catalog",
    "LeakFilter",
    "LeakedCall",
    "Segment",
    "is_unmarked",
    "is_untriggered",
]
