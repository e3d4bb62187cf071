"""Who a request comes from, where a reverse proxy stands in front."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class TrustedProxies:
    """The reverse proxies whose `X-Forwarded-*` headers are believed. Nobody else's are."""

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self._trusted: tuple[_Network, ...] = tuple(
            ipaddress.ip_network(one, strict=False) for one in trusted
        )

    def client_of(self, peer: str, fields: dict[str, str]) -> str:
        """The client's address. Sets the Host that the client asked for."""
        if not self._trusted or not self._trusts(peer):
            return peer
        if host := _last(fields, "x-forwarded-host"):
            fields["host"] = host
        # Each proxy adds whom it heard from. From the right, the first that we do not trust is the client.
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
