"""Read certificate files, and check them before they are needed: so an error can name the file."""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

# Where systems keep one file with all certificates. A standalone Python (uv, pyenv) has an OpenSSL with other
# default paths.
_KNOWN_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # RHEL, CentOS
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # Alpine, macOS, OpenBSD
    "/usr/local/share/certs/ca-root-nss.crt",  # FreeBSD
)
_MAX_FILES = 64
_NOTHING = "this machine has no certificates to trust; install ca-certificates, or set SSL_CERT_FILE"


class Unusable(ValueError):
    """A file cannot be used. The text continues a sentence that begins with the config key or variable."""


def certificates(path: Path) -> bytes:
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


def check_environment(env: Mapping[str, str]) -> None:
    """Raises `Unusable` if an environment variable names a file that cannot be used."""
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        _named(name, env)


def own_store() -> bool:
    """Does libcurl use the system's own certificate store? (macOS, Windows; an environment variable replaces
    it.)"""
    replaced = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
    return sys.platform in ("darwin", "win32") and not replaced


class Trust:
    """The trusted certificates as files, one for each set.

    libcurl parses a file once and caches the result for a day. It would parse certificates in memory
    (`CAINFO_BLOB`) again for each connection. The system's own file is used as it is.
    """

    def __init__(self) -> None:
        self._files: dict[bytes, str | None] = {}
        self._folder: TemporaryDirectory[str] | None = None

    def file(self, more: bytes) -> str | None:
        """The path of a PEM file with the system's certificates, those of `REQUESTS_CA_BUNDLE`, and `more`.

        None if the system does not keep certificates in files. Raises `Unusable` if there are none at all, or
        if an environment variable names a file that cannot be used.
        """
        if more not in self._files:
            if len(self._files) >= _MAX_FILES:
                self._files.clear()
            self._files[more] = self._made(more)
        return self._files[more]

    def close(self) -> None:
        """Remove the written files."""
        self._files.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _made(self, more: bytes) -> str | None:
        found = _system()
        extra = [part for part in (_named("REQUESTS_CA_BUNDLE", os.environ), more) if part]
        if isinstance(found, Path):
            if not extra:
                return str(found)
            extra.insert(0, found.read_bytes())
        elif found:
            extra.insert(0, found)
        elif not own_store():
            raise Unusable(_NOTHING)
        return self._written(b"\n".join(extra)) if extra else None

    def _written(self, data: bytes) -> str:
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="dragoman-ca-")
        path = Path(self._folder.name) / f"{sha256(data).hexdigest()}.pem"
        path.write_bytes(data)
        return str(path)


def _system() -> Path | bytes:
    """The file with the system's certificates, or their content if they are in several files."""
    env = os.environ
    named = _named("SSL_CERT_FILE", env)
    folder = env.get("SSL_CERT_DIR")
    if named and not folder:
        return Path(env["SSL_CERT_FILE"])
    if named or folder:
        return b"\n".join(filter(None, (named, _all_in(folder))))
    paths = ssl.get_default_verify_paths()
    for name in (paths.cafile, *_KNOWN_FILES):
        if name and Path(name).is_file():
            return Path(name)
    return _all_in(paths.capath)


def _all_in(folders: str | None) -> bytes:
    """The PEM certificates in all files of these folders. OpenSSL itself reads only files named by a hash."""
    parts: dict[bytes, None] = {}
    for folder in (folders or "").split(os.pathsep):
        if folder and Path(folder).is_dir():
            for path in sorted(Path(folder).iterdir()):
                try:
                    data = path.read_bytes() if path.is_file() else b""
                except OSError:
                    continue
                if b"-----BEGIN CERTIFICATE-----" in data:
                    parts[data] = None
    return b"\n".join(parts)


def _named(name: str, env: Mapping[str, str]) -> bytes:
    path = env.get(name)
    if not path:
        return b""
    if name == "REQUESTS_CA_BUNDLE" and Path(path).is_dir():
        return b""  # requests also accepts a folder; use `SSL_CERT_DIR` for one here
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
