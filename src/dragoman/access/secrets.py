"""Secrets of keys that are made at run time."""

from __future__ import annotations

import hashlib
import secrets

from ..credentials.secret import Secret

PREFIX = "dgm-"
_BYTES = 32
_SHOWN = len(PREFIX) + 4


def new_secret() -> Secret:
    """A new secret with 256 random bits."""
    return Secret(PREFIX + secrets.token_urlsafe(_BYTES))


def digest(secret: Secret) -> bytes:
    """What is stored of a secret.

    Slow hashes (bcrypt, argon2) protect passwords, which can be guessed. 256 random bits cannot be guessed,
    so one SHA-256 is enough. It costs a microsecond per request instead of a tenth of a second.
    """
    return hashlib.sha256(secret.reveal().encode("utf-8", "surrogatepass")).digest()


def shown_part(secret: Secret) -> str:
    """The first characters, by which the owner recognises the key."""
    return secret.reveal()[:_SHOWN]
