"""Parse base URLs as users write them.

Users write what the SDK of their provider takes, and SDKs differ: OpenAI's SDK wants the version
(`…/v1`), Anthropic's and Google's want the root and add the version. Some providers have another version
(`/api/paas/v4`), a version in the middle (`/v1beta/openai`), or one in the query (`?api-version=…`).
The rules:

- the protocol's own version at the end (`/v1`, `/v1beta`) may be given or missing;
- for OpenAI's protocols, any other version in the path or the query stays, and Dragoman adds none;
- a full endpoint (`…/chat/completions`) without a version stays: some servers have no version at all.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from urllib.parse import urlsplit

import msgspec

from ..protocols.registry import upstream_protocol, upstreams

_PATH_VERSION = re.compile(r"^/v\d+[a-z0-9]*(?=/)")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class BadUrl(ValueError):
    """Why a text is not a base URL. The message continues a sentence that starts with the key: "must …"."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The base of an upstream's URLs."""

    root: str
    versioned: bool = False
    """`root` contains its own version, or the server has none: `url` drops the version of the path."""
    query: str = ""

    @property
    def origin(self) -> str:
        """`https://host:port`. A credential is bound to it."""
        parts = urlsplit(self.root)
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
        host = parts.hostname or ""
        return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    @property
    def host(self) -> str:
        return urlsplit(self.root).hostname or ""

    @property
    def port(self) -> int:
        parts = urlsplit(self.root)
        return parts.port or _DEFAULT_PORTS[parts.scheme]

    def url(self, path: str) -> str:
        """The URL of `path`, which starts at the protocol's root: `/v1/messages`."""
        tail = _PATH_VERSION.sub("", path, count=1) if self.versioned else path
        if not self.query:
            return self.root + tail
        return self.root + tail + ("&" if "?" in tail else "?") + self.query


def endpoint(base_url: str, protocol: str) -> Endpoint:
    """Parse `base_url` for `protocol`. Raises `BadUrl`."""
    given, query = _checked(base_url)
    _check_endpoint(given, protocol)
    address = upstream_protocol(protocol).address
    root = re.sub(address.endpoint, "", given)
    bare = _without_version(root)
    whole_endpoint = root != given and bare == root
    if whole_endpoint or address.own_version(urlsplit(root).path, query):
        return Endpoint(root=root, versioned=True, query=query)
    return Endpoint(root=bare, query=query)


def _check_endpoint(given: str, protocol: str) -> None:
    for other in upstreams().values():
        found = re.search(other.address.endpoint, given)
        if found and other.name != protocol and other.address.distinctive:
            raise BadUrl(f'ends in "{found[0]}", which belongs to the protocol "{other.name}"')


def _without_version(root: str) -> str:
    """Remove a protocol's version from the end of `root`.

    Any protocol's: a user may paste the URL of another protocol of the same provider.
    """
    for record in upstreams().values():
        if root.endswith(record.address.version):
            return root.removesuffix(record.address.version)
    return root


def _checked(base_url: str) -> tuple[str, str]:
    text = base_url.strip()
    if "://" not in text:
        host = text.partition("?")[0] or "api.example.com"  # the query may contain a key: never repeat it
        raise BadUrl(f'must begin with https:// or http://, as in "https://{host}"')
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise BadUrl("has an invalid host or port") from None
    _check_parts(parts.scheme, parts.hostname, port)
    if parts.username or parts.password:
        raise BadUrl("must not contain a user name or password; use credential instead")
    if parts.fragment or re.search(r"\s", text):
        raise BadUrl("must not contain spaces or a #fragment")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", parts.query


def _check_parts(scheme: str, host: str | None, port: int | None) -> None:
    if scheme not in _DEFAULT_PORTS:
        raise BadUrl(f"must begin with https:// or http://, not {scheme}://")
    if not host:
        raise BadUrl("has no host")
    if port == 0:
        raise BadUrl("has the port 0; use the port that the server listens on")


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Is `host` a loopback address or name, which only this machine can reach?"""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_private(host: str) -> bool:
    """Is `host` this machine, a machine of a local network, or a name without a domain (a container)?"""
    if is_loopback(host) or "." not in host or host.endswith((".local", ".lan", ".internal")):
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return False
