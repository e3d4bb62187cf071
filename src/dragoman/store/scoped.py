"""Keys of entries that belong to one client."""

from __future__ import annotations

import hashlib

from .types import EntryKey


def scoped(namespace: str, scope: str, id: str) -> EntryKey:
    """The key of `id` for the client with this scope. Another client's equal id has another key."""
    text = f"{len(scope)}:{scope}{id}"
    return EntryKey(
        namespace, hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()
    )
