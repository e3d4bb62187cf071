"""The keys of an upstream that say how it is reached: a proxy, and files with certificates."""

from __future__ import annotations

from typing import Any

from ..transport.client import trust
from ..transport.client.contract import NO_PROXY, Network
from ..transport.client.proxies import problem
from .values import Context, Wrong, nearest, path, table, text

KEYS = ("proxy", "ca", "client_cert")
_PARTS = ("cert", "key")


def network(given: dict[str, Any]) -> Network:
    """What was read of `KEYS`, as one value."""
    return Network(**{key: given[key] for key in KEYS if key in given})


def proxy(value: Any, context: Context) -> str:
    """A proxy's URL, or `none`. A complaint does not repeat it: it may hold a password."""
    url = text(value, context)
    wrong = None if url == NO_PROXY else problem(url)
    if wrong:
        raise Wrong(f'{wrong}; or "{NO_PROXY}" for no proxy at all')
    return url


def ca(value: Any, context: Context) -> bytes:
    try:
        return trust.certificates(path(value, context))
    except trust.Unusable as error:
        raise Wrong(str(error)) from None


def client_cert(value: Any, context: Context) -> bytes:
    """One file with certificate and key, or a table that names both."""
    if isinstance(value, str):
        value = {"cert": value}
    parts = table(value)
    for name in parts:
        if name not in _PARTS:
            raise Wrong(f'has the unknown key "{name}"{nearest(name, _PARTS)}', name)
    if "cert" not in parts:
        raise Wrong("has no cert: write { cert = PATH, key = PATH }")
    key = path(parts["key"], context) if "key" in parts else None
    try:
        return trust.identity(path(parts["cert"], context), key)
    except trust.Unusable as error:
        raise Wrong(str(error)) from None
