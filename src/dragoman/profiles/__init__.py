"""Facts about known clients as data, and the detection of a client by its requests."""

from __future__ import annotations

from .agents import AGENTS
from .background import in_background
from .detection import HeadClues, detect, head_clues
from .profile import Arguments, Background, Profile, Signs
from .registry import PROFILES, UNKNOWN
from .sdks import SDKS

__all__ = [
    "AGENTS",
    "PROFILES",
    "SDKS",
    "UNKNOWN",
    "Arguments",
    "Background",
    "HeadClues",
    "Profile",
    "Signs",
    "detect",
    "head_clues",
    "in_background",
]
