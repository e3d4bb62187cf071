"""Exchanges written down byte for byte, without secrets, and played once more by today's code."""

from .format import ENDING, MAGIC, Recording, RecordingError, dumped, load, loads
from .replay import Replayed, replay

__all__ = [
    "ENDING",
    "MAGIC",
    "Recording",
    "RecordingError",
    "Replayed",
    "dumped",
    "load",
    "loads",
    "replay",
]
