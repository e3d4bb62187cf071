"""Keys of entries that belong to one client."""

from __future__ import annotations

import hashlib

from .types import Key


def scoped(namespace: str, scope: str, id: str) -> Key:
    """The key of `id` for the client with this scope. Another client's equal id has another key."""
    text = f"{len(scope)}:{scope}{id}"
    return Key(namespace, hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest())
