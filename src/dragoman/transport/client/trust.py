"""Certificates in files: read and checked before they are needed, so that a complaint names the file."""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from pathlib import Path

_FILES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")


class Unusable(ValueError):
    """A file that cannot be used. The text continues a sentence that begins with what names the file."""


def certificates(path: Path) -> bytes:
    """The PEM certificates in `path`."""
    data = _read(path)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=data.decode("ascii", "replace"))
    except ssl.SSLError:
        raise Unusable(
            f"names {path}, which holds no PEM certificates; they begin with -----BEGIN CERTIFICATE-----"
        ) from None
    return data


def identity(cert: Path, key: Path | None) -> bytes:
    """The PEM certificate in `cert` and its private key, from `key` or from the same file."""
    data = _read(cert) if key is None else _read(cert) + b"\n" + _read(key)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(cert, key, password=_no_password)
    except _Encrypted:
        raise Unusable(
            f"names {key or cert}, whose private key has a password; store it without one "
            "(openssl pkey -in FILE -out NEW), readable for you alone"
        ) from None
    except ssl.SSLError:
        raise Unusable(
            f"names {cert}{f' and {key}' if key else ''}: that is no PEM certificate with the private key "
            "that belongs to it"
        ) from None
    return data


def environment_roots(env: Mapping[str, str] | None = None) -> bytes:
    """What `REQUESTS_CA_BUNDLE` adds to the trusted certificates. The library reads `SSL_CERT_FILE` itself.

    `Unusable` where one of the variables names a file that cannot be used.
    """
    env = os.environ if env is None else env
    found = {name: _named(name, env) for name in _FILES}
    return found["REQUESTS_CA_BUNDLE"]


def _named(name: str, env: Mapping[str, str]) -> bytes:
    path = env.get(name)
    if not path:
        return b""
    if name == "REQUESTS_CA_BUNDLE" and Path(path).is_dir():
        return b""  # requests takes a folder too; here `SSL_CERT_DIR` names one
    try:
        return certificates(Path(path))
    except Unusable as error:
        raise Unusable(f"the environment variable {name} {error}") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        why = (error.strerror or "").lower()
        raise Unusable(f"names the file {path}, which cannot be read: {why}") from None


class _Encrypted(Exception):
    """A private key needs a password."""


def _no_password() -> str:
    raise _Encrypted
