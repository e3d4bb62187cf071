"""Tool calls that a model wrote as text: found, read and taken out while the text streams."""

from .filter import LeakedCall, LeakFilter, Segment
from .values import Catalog

__all__ = ["Catalog", "LeakFilter", "LeakedCall", "Segment"]
