"""The client's address behind reverse proxies (`X-Forwarded-For`, `X-Forwarded-Host`)."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class TrustedProxies:
    """Reverse proxies whose `X-Forwarded-*` headers are trusted. Those of other senders are ignored."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._trusted: tuple[_Network, ...] = tuple(
            ipaddress.ip_network(network, strict=False) for network in trusted
        )

    def client_of(self, peer: str, fields: dict[str, str]) -> str:
        """The client's address. Also replaces `host` in `fields` by the host that the client asked for."""
        if not self._trusted or not self._trusts(peer):
            return peer
        if host := _last(fields, "x-forwarded-host"):
            fields["host"] = host
        # Each proxy appends the address of its sender. From the right, the first untrusted one is the client:
        # addresses further left may be forged.
        for address in reversed(fields.get("x-forwarded-for", "").split(",")):
            if address.strip():
                peer = address.strip()
                if not self._trusts(peer):
                    break
        return peer

    def _trusts(self, address: str) -> bool:
        try:
            ip = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(ip in network for network in self._trusted)


def _last(fields: Mapping[str, str], name: str) -> str:
    return fields.get(name, "").rpartition(",")[2].strip()
