"""The credentials of all upstreams, and the headers that requests to them are sent with.

A credential source is opened at the first request. It is closed when a reload of the config drops it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from ..config.types import UpstreamConfig
from ..credentials import (
    BoundCredential,
    CredentialSource,
    CredentialSpec,
    Token,
    for_caller,
    open_credential,
)
from ..credentials.secret import Secret
from ..observe.tap import harmless_headers, harmless_path, sent_secrets
from ..protocols.registry import protocol
from ..transport.client import Network

_Key = tuple[str, CredentialSpec, Network]


class OutgoingHeaders(dict[str, str]):
    """The headers of a request to an upstream."""

    __slots__ = ("redacted", "redacted_url", "secrets")

    def __init__(self, headers: Mapping[str, str], url: str) -> None:
        super().__init__(headers)
        self.redacted = harmless_headers(headers)
        self.redacted_url = harmless_path(url)
        self.secrets = sent_secrets(headers, url)
        """The secrets in the headers and the URL."""


NO_OUTGOING_HEADERS = OutgoingHeaders({}, "")
NO_BETAS: Mapping[str, str] = MappingProxyType({})


class _HeaderCache:
    """The credential source of one upstream, and the headers of the latest request to it."""

    __slots__ = ("betas", "headers", "secret", "source", "upstream", "url", "uses_caller_key")

    def __init__(self, upstream: UpstreamConfig, source: CredentialSource) -> None:
        self.upstream = upstream
        self.source = source
        self.uses_caller_key = for_caller(source, None) is not source
        """Is the client's own key sent, and not one of the config?"""
        self.url: str = ""
        self.betas = NO_BETAS
        self.secret: Secret | None = None
        self.headers = NO_OUTGOING_HEADERS

    def updated(self, url: str, token: Token, betas: Mapping[str, str]) -> OutgoingHeaders:
        """The cached headers, written again if the URL, the token or the betas changed."""
        if url != self.url or token.secret is not self.secret or betas != self.betas:
            self.headers = OutgoingHeaders(_headers(self.upstream, url, token, betas), url)
            self.url, self.betas, self.secret = url, betas, token.secret
        return self.headers


class Keyring:
    """Keeps one credential source per upstream. A changed credential in the config opens a new one."""

    def __init__(
        self, env: Mapping[str, str], learn: Callable[[Iterable[Secret]], None] = lambda secrets: None
    ) -> None:
        """`learn` gets every key before it is used, so that the redactor knows it."""
        self._env = env
        self._learn = learn
        self._sources: dict[_Key, CredentialSource] = {}
        self._caches: dict[str, _HeaderCache] = {}
        """By the upstream's name."""
        self._closing: set[asyncio.Task[None]] = set()

    def cached_headers(
        self, upstream: UpstreamConfig, url: str, caller: Secret | None, betas: Mapping[str, str]
    ) -> OutgoingHeaders | None:
        """The headers of the latest request, if they are still right and no credential must be read.

        This saves a coroutine for nearly every request. If it returns None, call `headers`.
        """
        cache = self._caches.get(upstream.name)
        if cache is None or cache.upstream is not upstream:
            return None
        token = (for_caller(cache.source, caller) if cache.uses_caller_key else cache.source).cached()
        if token is None or token.secret is not cache.secret or url != cache.url or betas != cache.betas:
            return None
        if token.secret is not None:
            self._learn((token.secret,))
        return cache.headers

    async def headers(
        self,
        upstream: UpstreamConfig,
        url: str,
        *,
        refused: Mapping[str, str] | None = None,
        caller: Secret | None = None,
        betas: Mapping[str, str] = NO_BETAS,
    ) -> OutgoingHeaders:
        """The headers for a request to `upstream`: a valid credential, and the headers of the config.

        `refused` are headers that the upstream has just refused. If the credential is still the same, it is
        read again. `betas` are the beta features that the client turned on (`beta_header`): its request may
        use fields that need them.
        """
        cache = self._cache(upstream)
        source = for_caller(cache.source, caller)
        headers = self._updated(cache, url, await source.token(), betas)
        if refused is not None and headers == refused:
            headers = self._updated(cache, url, await source.token(force=True), betas)
        return headers

    def _updated(
        self, cache: _HeaderCache, url: str, token: Token, betas: Mapping[str, str]
    ) -> OutgoingHeaders:
        if token.secret is not None:
            self._learn((token.secret,))
        return cache.updated(url, token, betas)

    def keep_only(self, upstreams: Iterable[UpstreamConfig]) -> None:
        """Close the sources of all other upstreams. A read that an attempt waits for still finishes."""
        self._caches.clear()
        wanted = {_key(upstream) for upstream in upstreams}
        for key in self._sources.keys() - wanted:
            task = asyncio.get_running_loop().create_task(self._sources.pop(key).close(wait=True))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close all sources, and cancel the reads that still run."""
        for task in tuple(self._closing):
            task.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        for source in self._sources.values():
            await source.close()

    def _cache(self, upstream: UpstreamConfig) -> _HeaderCache:
        cache = self._caches.get(upstream.name)
        if cache is None or cache.upstream is not upstream:
            cache = self._caches[upstream.name] = _HeaderCache(upstream, self._source(upstream))
        return cache

    def _source(self, upstream: UpstreamConfig) -> CredentialSource:
        key = _key(upstream)
        source = self._sources.get(key)
        if source is None:
            spec = upstream.credential
            source = open_credential(
                spec, name=upstream.name, environment=self._env, network=upstream.network
            )
            self._sources[key] = source
        return source


def _key(upstream: UpstreamConfig) -> _Key:
    return upstream.name, upstream.credential, upstream.network


def _headers(upstream: UpstreamConfig, url: str, token: Token, betas: Mapping[str, str]) -> dict[str, str]:
    headers = dict(upstream.headers)
    wire = protocol(upstream.protocol)
    headers |= wire.headers(upstream.target(""))
    if wire.beta_header:
        names = [
            *headers.get(wire.beta_header, "").split(","),
            *betas.get(wire.beta_header, "").split(","),
        ]
        features = dict.fromkeys(name.strip() for name in names if name.strip())
        if features:
            headers[wire.beta_header] = ",".join(features)
    bound = BoundCredential(token, upstream.base_url, upstream.protocol, upstream.auth)
    return headers | bound.headers(url)
