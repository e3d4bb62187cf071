"""Facts about Cursor: its paths, and what it has in common with Chat, in which it asks."""

from __future__ import annotations

from ..facts import Endpoints

ENDPOINTS = Endpoints(
    roots=("/cursor/v2",),
    answers=("/chat/completions",),
    own=("/cursor/v2",),
)
# Cursor puts `/chat/completions` behind whatever base URL it was given, `/v1` or none.
CHAT_ENDPOINTS = Endpoints(
    roots=("/cursor", "/cursor/v1"),
    answers=("/chat/completions",),
    own=("/cursor",),
)
