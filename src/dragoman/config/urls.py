"""Base URLs as people write them, made into addresses that are right.

People give what their provider's SDK takes, and SDKs do not agree: OpenAI's wants the version
(`…/v1`), Anthropic's and Google's want the root and add it. Some providers have another version
(`/api/paas/v4`), one in the middle (`/v1beta/openai`), or one in the query (`?api-version=…`). The rules:

- a version that is the protocol's own at the end (`/v1`, `/v1beta`) is understood, given or missing;
- OpenAI-style: any other version in the path or the query is the provider's own and stays; ours is left off;
- a whole endpoint (`…/chat/completions`) is taken as it is: for servers that have no version at all.
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from urllib.parse import urlsplit

import msgspec

from ..protocols.registry import PROTOCOLS

_OUR_VERSION = re.compile(r"^/v\d+[a-z0-9]*(?=/)")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class BadUrl(ValueError):
    """Why a text cannot be a base URL; goes on after the key's name: "must …"."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where an upstream's paths begin."""

    root: str
    versioned: bool = False
    """`root` names its version (or has none): the version of our paths is left off."""
    query: str = ""

    @property
    def origin(self) -> str:
        """`https://host:port`: a credential is bound to it."""
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
        """The address of `path`, which is written from the protocol's root: `/v1/messages`."""
        below = _OUR_VERSION.sub("", path, count=1) if self.versioned else path
        if not self.query:
            return self.root + below
        return self.root + below + ("&" if "?" in below else "?") + self.query


def endpoint(base_url: str, protocol: str) -> Endpoint:
    """`base_url` as `protocol` needs it; `BadUrl` says what is wrong with it."""
    given, query = _checked(base_url)
    _check_endpoint(given, protocol)
    address = PROTOCOLS[protocol].address
    root = re.sub(address.endpoint, "", given)
    bare = _without_version(root)
    whole_endpoint = root != given and bare == root
    if whole_endpoint or address.own_version(urlsplit(root).path, query):
        return Endpoint(root=root, versioned=True, query=query)
    return Endpoint(root=bare, query=query)


def _check_endpoint(given: str, protocol: str) -> None:
    for other in PROTOCOLS.values():
        found = re.search(other.address.endpoint, given)
        if found and other.name != protocol and other.address.distinctive:
            raise BadUrl(f'ends in "{found[0]}", which belongs to the protocol "{other.name}"')


def _without_version(root: str) -> str:
    """`root` without the version of some protocol at its end."""
    for record in PROTOCOLS.values():
        if root.endswith(record.address.version):
            return root.removesuffix(record.address.version)
    return root


def _checked(base_url: str) -> tuple[str, str]:
    text = base_url.strip()
    if "://" not in text:
        host = text.partition("?")[0] or "api.example.com"  # a key may stand in the query
        raise BadUrl(f'must begin with https:// or http://, as in "https://{host}"')
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise BadUrl("has a host or a port that is none") from None
    _check_parts(parts.scheme, parts.hostname, port)
    if parts.username or parts.password:
        raise BadUrl("must not hold a user name or password; use credential for that")
    if parts.fragment or re.search(r"\s", text):
        raise BadUrl("must not hold spaces or a #fragment")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", parts.query


def _check_parts(scheme: str, host: str | None, port: int | None) -> None:
    if scheme not in _DEFAULT_PORTS:
        raise BadUrl(f"must begin with https:// or http://, not {scheme}://")
    if not host:
        raise BadUrl("has no host")
    if port == 0:
        raise BadUrl("has the port 0, which nothing can listen on")


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Can only this machine reach `host`?"""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
