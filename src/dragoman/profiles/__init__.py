"""Who calls: the facts about known clients as data, and how a client is told from what it sends."""

from __future__ import annotations

from .agents import AGENTS
from .detection import HeadClues, detect, head_clues
from .profile import Arguments, Profile, Signs
from .registry import PROFILES, UNKNOWN
from .sdks import SDKS

__all__ = [
    "AGENTS",
    "PROFILES",
    "SDKS",
    "UNKNOWN",
    "Arguments",
    "HeadClues",
    "Profile",
    "Signs",
    "detect",
    "head_clues",
]
