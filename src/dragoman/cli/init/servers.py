"""Find model servers on this machine: ask for a list of models at the ports where they usually listen."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from ...config.providers import Provider, providers
from ...config.urls import is_loopback
from ...protocols.common.fields import is_array, is_object
from ...transport.client import Client, HttpError, open_client
from ..gateway_address import reachable
from .candidates import UpstreamCandidate

TIMEOUT = 1.5  # seconds for all servers together; a server on this machine answers within milliseconds
_LARGEST = 1024 * 1024
_MAX_MODELS = 50
# Dragoman sends this header. A gateway on the usual port of a model server is not a model server.
_OURS = "x-dragoman-exchange"


async def servers(env: Mapping[str, str], time_limit: float = TIMEOUT) -> list[UpstreamCandidate]:
    """The known servers that answer with a list of models. Sends nothing to other machines."""
    local = [provider for provider in providers().values() if _is_local(provider)]
    async with open_client() as client:
        asked = await asyncio.gather(*[_ask(client, provider, env, time_limit) for provider in local])
    return [found for found in asked if found is not None]


def _is_local(provider: Provider) -> bool:
    url: str = provider.upstream.get("base_url", "")
    return is_loopback(urlsplit(url).hostname or "")


async def _ask(
    client: Client, provider: Provider, env: Mapping[str, str], time_limit: float
) -> UpstreamCandidate | None:
    url = _address(provider, env)
    try:
        async with asyncio.timeout(time_limit):
            response = await client.request("GET", f"{url}/models", {"accept": "application/json"})
            try:
                if response.status != 200 or _OURS in response.headers:
                    return None
                models = _listed(await response.read(_LARGEST))
            finally:
                await response.close()
    except (HttpError, ValueError, TimeoutError):
        return None
    if models is None:
        return None
    moved = {} if url == provider.upstream["base_url"] else {"provider": provider.name, "base_url": url}
    return UpstreamCandidate(name=provider.name, table=moved, why=f"answers at {url}", models=models)


def _address(provider: Provider, env: Mapping[str, str]) -> str:
    """The server's address. Its variable (OLLAMA_HOST) overrides the usual one if it names this machine."""
    usual: str = provider.upstream["base_url"]
    override = env.get(provider.base_url_env, "").strip() if provider.base_url_env else ""
    try:
        parts = urlsplit(override if "//" in override else f"//{override}")
        # OLLAMA_HOST is the address that Ollama listens on, and that may be a wildcard.
        host = reachable(parts.hostname or "127.0.0.1")
        port = parts.port or urlsplit(usual).port
    except ValueError:
        return usual
    if not override or not is_loopback(host) or parts.scheme == "https":
        return usual
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{urlsplit(usual).path}"


def _listed(body: bytes) -> tuple[str, ...] | None:
    """The models of an OpenAI-style list; None for any other body: port 8080 may be another program's."""
    try:
        value: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    entries = value.get("data") if is_object(value) else None
    if not is_array(entries):
        return None
    names = [entry.get("id") for entry in entries if is_object(entry)]
    return tuple(name for name in names if isinstance(name, str) and _is_usable(name))[:_MAX_MODELS]


def _is_usable(name: str) -> bool:
    return 0 < len(name) <= 200 and name.isprintable() and "*" not in name
