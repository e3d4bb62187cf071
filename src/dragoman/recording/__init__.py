"""Record exchanges in files, byte for byte and without secrets, and replay them."""

from .format import ENDING, MAGIC, Recording, RecordingError, dump, load, loads
from .replay import Replayed, replay

__all__ = [
    "ENDING",
    "MAGIC",
    "Recording",
    "RecordingError",
    "Replayed",
    "dump",
    "load",
    "loads",
    "replay",
]
