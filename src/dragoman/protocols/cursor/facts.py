"""Facts about Cursor: the paths of its own format and of its Chat dialect."""

from __future__ import annotations

from ..facts import Endpoints

ENDPOINTS = Endpoints(
    roots=("/cursor/v2",),
    answers=("/chat/completions",),
    own=("/cursor/v2",),
)
# Cursor appends `/chat/completions` to the configured base URL, which may or may not end with `/v1`.
CHAT_ENDPOINTS = Endpoints(
    roots=("/cursor", "/cursor/v1"),
    answers=("/chat/completions",),
    own=("/cursor",),
)
