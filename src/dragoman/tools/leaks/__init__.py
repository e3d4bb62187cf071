"""Tool calls that a model wrote as text: found, read and taken out while the text streams."""

from .catalog import Catalog
from .filter import LeakedCall, LeakFilter, Segment, is_untriggered

__all__ = [
    "Catalog",
    "LeakFilter",
    "LeakedCall",
    "Segment",
    "is_untriggered",
]
