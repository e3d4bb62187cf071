"""Every profile by its name. Agents come before the SDKs that they are built with."""

from __future__ import annotations

from ..protocols.registry import PROTOCOLS
from .agents import AGENTS
from .profile import Profile
from .sdks import SDKS

UNKNOWN = Profile(
    name="unknown",
    title="Any other client",
    protocols=tuple(PROTOCOLS),
    notes=("A client with too few signs of any known profile.",),
)

PROFILES: dict[str, Profile] = {profile.name: profile for profile in (*AGENTS, *SDKS, UNKNOWN)}
