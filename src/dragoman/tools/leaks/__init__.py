"""Tool calls that a model wrote as text: found, read and taken out while the text streams."""

from .filter import LeakedCall, LeakFilter, Segment

__all__ = ["LeakFilter", "LeakedCall", "Segment"]
