"""Limits of the server."""

from __future__ import annotations

import msgspec


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes, times in seconds."""

    body: int = 64 * 1024 * 1024
    """The largest request body, after decompression."""
    connections: int = 4096
    """Concurrent connections. Further clients get a 503."""
    timeout: float = 30.0
    """How long a client may take to send a head, to begin its body, or to read."""


# Of a head: agents send long authorization headers and cookies, but nothing near these sizes.
MAX_LINE = 16 * 1024
MAX_FIELD = 32 * 1024
MAX_FIELDS = 128
MAX_HEAD = 64 * 1024
"""All header fields together."""
MIN_BODY_RATE = 16 * 1024
"""Bytes per second. A body with a lower average rate is refused after `Limits.timeout`."""
IDLE_TIMEOUT = 75.0
"""How long a connection without a request stays open."""
