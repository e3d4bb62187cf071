"""Credentials of known programs: data, so that a config needs only the program's name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

_STATE = "User/globalStorage/state.vscdb"
_FOLDERS = {"darwin": "~/Library/Application Support", "win32": "%APPDATA%"}
"""Where programs based on VS Code keep their state; elsewhere it is `~/.config`."""

_INFO = "base64.1[1=oauthTokenInfoSentinelKey].2.1.base64"

PROGRAMS: dict[str, tuple[tuple[str, ...], tuple[dict[str, str], ...]]] = {
    "antigravity": (
        ("Antigravity", "Antigravity IDE"),
        (
            {"key": "antigravityUnifiedStateSync.oauthToken", "protobuf": f"{_INFO}.1", "expires": "4.1"},
            # Short-lived, without an expiry time, and absent in some versions of the IDE.
            {"key": "antigravityAuthStatus", "field": "apiKey"},
        ),
    ),
}
"""By the name in the config: the program's folders, and the rows of its state file."""


def known_tables(name: str, platform: str = sys.platform) -> list[Mapping[str, Any]]:
    """The credential tables to try in order for the program `name`; empty if it is not known."""
    programs, rows = PROGRAMS.get(name, ((), ()))
    folder = _FOLDERS.get(platform, "~/.config")
    paths = [f"{folder}/{program}/{_STATE}" for program in programs]
    return [{"sqlite": path, **row} for path in paths for row in rows]
