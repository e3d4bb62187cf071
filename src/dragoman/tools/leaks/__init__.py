"""Tool calls that a model wrote as text: found, read and taken out while the text streams."""

from .catalog import Catalog
from .filter import Frame, LeakedCall, LeakFilter, Segment, is_untriggered

__all__ = [
    "Catalog",
    "Frame",
    "LeakFilter",
    "LeakedCall",
    "Segment",
    "is_untriggered",
]
