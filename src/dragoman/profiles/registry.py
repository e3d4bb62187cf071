"""Every profile by its name. Agents come first: they are made with the SDKs, and show those signs as well."""

from __future__ import annotations

from ..protocols.registry import PROTOCOLS
from .agents import AGENTS
from .profile import Profile
from .sdks import SDKS

UNKNOWN = Profile(
    name="unknown",
    title="Anybody else",
    protocols=tuple(PROTOCOLS),
    notes=("Whoever shows too few signs of anybody known.",),
)

PROFILES: dict[str, Profile] = {profile.name: profile for profile in (*AGENTS, *SDKS, UNKNOWN)}
