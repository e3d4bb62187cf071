"""Random ids for exchanges."""

from __future__ import annotations

import os


def new_id() -> str:
    """Sixteen random hexadecimal digits."""
    return os.urandom(8).hex()
