"""How much one client may ask of the server."""

from __future__ import annotations

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes, times in seconds."""

    body: int = 64 * 1024 * 1024
    """The largest request body, after unpacking."""
    connections: int = 4096
    """Open at the same time. Further clients get a 503."""
    patience: float = 30.0
    """How long a client may take for a request's head, stay silent in the middle of a body, or not read."""


MAX_LINE = 16 * 1024
MAX_FIELD = 32 * 1024
MAX_FIELDS = 128
MAX_HEAD = 64 * 1024
"""All header fields together."""
SLOWEST_BODY = 16 * 1024
"""Bytes a second: a body that comes slower than this is given up after `Limits.patience`."""
IDLE = 75.0
"""How long a connection is kept on which nothing is asked."""
