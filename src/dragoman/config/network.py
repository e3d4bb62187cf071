"""Readers of the network keys of an upstream: proxy, CA certificates and client certificate."""

from __future__ import annotations

from typing import Any

from ..transport.client import trust
from ..transport.client.contract import NO_PROXY, Network
from ..transport.client.proxies import problem
from .values import Context, InvalidValue, nearest, path, table, text

KEYS = ("proxy", "ca", "client_cert")
_PARTS = ("cert", "key")


def network(values: dict[str, Any]) -> Network:
    """Join the values of `KEYS` that were given."""
    return Network(**{key: values[key] for key in KEYS if key in values})


def proxy(value: Any, context: Context) -> str:
    """The URL of a proxy, or `none`. The error does not repeat the URL: it may contain a password."""
    url = text(value, context)
    error = None if url == NO_PROXY else problem(url)
    if error:
        raise InvalidValue(f'{error}; use "{NO_PROXY}" to connect without a proxy')
    return url


def ca(value: Any, context: Context) -> bytes:
    try:
        return trust.certificates(path(value, context))
    except trust.Unusable as error:
        raise InvalidValue(str(error)) from None


def client_cert(value: Any, context: Context) -> bytes:
    """The path of a file with certificate and key, or a table with both paths."""
    if isinstance(value, str):
        value = {"cert": value}
    parts = table(value)
    for name in parts:
        if name not in _PARTS:
            raise InvalidValue(f'has the unknown key "{name}"{nearest(name, _PARTS)}', name)
    if "cert" not in parts:
        raise InvalidValue("has no cert: write { cert = PATH, key = PATH }")
    key = path(parts["key"], context) if "key" in parts else None
    try:
        return trust.identity(path(parts["cert"], context), key)
    except trust.Unusable as error:
        raise InvalidValue(str(error)) from None
