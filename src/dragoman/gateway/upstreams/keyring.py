"""The credentials of all upstreams, and the headers that requests to them are sent with.

A credential source is opened at the first request. It is closed when a reload of the config drops it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from ..._version import __version__
from ...config.types import UpstreamConfig
from ...credentials import (
    BoundCredential,
    CredentialError,
    CredentialSource,
    CredentialSpec,
    Lock,
    Token,
    for_caller,
    open_credential,
    process_lock,
)
from ...credentials.secret import Secret
from ...observe.tap import harmless_headers, harmless_path, sent_secrets
from ...protocols.registry import upstream_protocol
from ...transport.client import Network

_SourceId = tuple[str, CredentialSpec, Network]

# `identity`: a compressed stream would reach the client late, in the blocks of the compressor.
CALL_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "user-agent": f"dragoman/{__version__}",
    }
)
"""The headers of every request to an upstream. Its own headers may replace them."""


class OutgoingHeaders(dict[str, str]):
    """The headers of a request to an upstream."""

    __slots__ = ("credential", "redacted", "redacted_url", "secrets")

    def __init__(self, headers: Mapping[str, str], url: str, credential: Secret | None = None) -> None:
        super().__init__(headers)
        self.credential = credential
        """What authenticates the request. It may not be among the headers: a signature is made with it."""
        self.redacted = dict(CALL_HEADERS) | harmless_headers(headers)
        self.redacted_url = harmless_path(url)
        self.secrets = sent_secrets(headers, url)
        """The secrets in the headers and the URL."""


NO_OUTGOING_HEADERS = OutgoingHeaders({}, "")
_POSTED = {"content-type": "application/json"}
"""The transport sends it with every body. A signature should cover it."""
NO_BETAS: Mapping[str, str] = MappingProxyType({})


class _HeaderCache:
    """The credential source of one upstream, and the headers of the latest request to it."""

    __slots__ = ("betas", "headers", "secret", "source", "upstream", "url")

    def __init__(self, upstream: UpstreamConfig, source: CredentialSource) -> None:
        self.upstream = upstream
        self.source = source
        self.url: str = ""
        self.betas = NO_BETAS
        self.secret: Secret | None = None
        self.headers = NO_OUTGOING_HEADERS

    def updated(
        self, url: str, body: bytes | None, token: Token, betas: Mapping[str, str]
    ) -> OutgoingHeaders:
        """The cached headers, written again if the URL, the token or the betas changed, or if it signs."""
        if (
            token.sign is not None
            or url != self.url
            or token.secret is not self.secret
            or betas != self.betas
        ):
            headers = _headers(self.upstream, url, body, token, betas)
            self.headers = OutgoingHeaders(headers, url, token.secret)
            self.url, self.betas, self.secret = url, betas, token.secret
        return self.headers


class Keyring:
    """Keeps one credential source per key of an upstream. A changed source is opened again."""

    def __init__(
        self,
        env: Mapping[str, str],
        learn: Callable[[Iterable[Secret]], None] = lambda secrets: None,
        lock: Lock = process_lock,
    ) -> None:
        """`learn` gets every key before it is used, so that the redactor knows it."""
        self._env = env
        self._lock = lock
        self._learn = learn
        self._sources: dict[_SourceId, CredentialSource] = {}
        self._caches: dict[tuple[str, int], _HeaderCache] = {}
        """By the upstream's name and the number of the key."""
        self._closing: set[asyncio.Task[None]] = set()

    async def headers(
        self,
        upstream: UpstreamConfig,
        url: str,
        *,
        body: bytes | None = None,
        refused: OutgoingHeaders | None = None,
        caller: Secret | None = None,
        betas: Mapping[str, str] = NO_BETAS,
    ) -> OutgoingHeaders:
        """The headers for a request to `upstream`: a valid credential, and the headers of the config.

        `body` is what is posted; None: the request is a GET. `refused` are headers that the upstream has just
        refused. If the credential is still the same, it is read again. `betas` are the beta features that
        the client turned on (`beta_header`): its request may use fields that need them.
        """
        token = await self._token(upstream, refused, caller)
        return self._cache(upstream).updated(url, body, token, betas)

    async def passing_headers(
        self,
        upstream: UpstreamConfig,
        url: str,
        *,
        method: str,
        body: bytes | None,
        passed: Mapping[str, str],
        refused: OutgoingHeaders | None = None,
        caller: Secret | None = None,
        betas: Mapping[str, str] = NO_BETAS,
    ) -> OutgoingHeaders:
        """The same for a request that passes as it is. `passed` are the client's own headers for it.

        `body` is None if it is sent while it arrives. Then nothing can sign it.
        """
        token = await self._token(upstream, refused, caller)
        if token.sign is not None and body is None:
            raise CredentialError(
                f"the credential of {upstream.name} signs whole requests, and this one is too long for that"
            )
        headers = {**_configured_headers(upstream, betas), **passed}
        bound = BoundCredential(token, upstream.base_url, upstream.protocol, upstream.auth)
        headers |= bound.headers(url, method=method, headers=headers, body=body or b"")
        return OutgoingHeaders(headers, url, token.secret)

    async def _token(
        self, upstream: UpstreamConfig, refused: OutgoingHeaders | None, caller: Secret | None
    ) -> Token:
        source = for_caller(self._cache(upstream).source, caller)
        token = source.cached() or await source.token()
        if refused is not None and token.secret == refused.credential:
            token = await source.token(force=True)
        if token.secret is not None:
            self._learn((token.secret,))
        return token

    async def key_name(self, upstream: UpstreamConfig) -> str:
        """The fingerprint of its current key. Before the first use, the place that the key comes from.

        A variable is read at once: another process may have told that its key cools down.
        """
        cache, place = self._cache(upstream), upstream.credential.description
        if cache.secret is None and upstream.credential.kind != "env":
            return place
        try:
            secret = (await cache.source.token()).secret
        except CredentialError:
            return place
        return place if secret is None else secret.fingerprint

    def problem(self, upstream: UpstreamConfig) -> str:
        """Why its key could not be read the last time; empty if it could."""
        return self._cache(upstream).source.problem

    async def changed_since(self, upstream: UpstreamConfig, refused: OutgoingHeaders) -> bool:
        """Read a refused key again. Is it another one now?"""
        source = self._cache(upstream).source
        try:
            token = await source.token()
            if token.secret == refused.credential:
                token = await source.token(force=True)
        except CredentialError:
            return False
        return token.secret != refused.credential

    def keep_only(self, upstreams: Iterable[UpstreamConfig]) -> None:
        """Close the sources of all other upstreams. A read that an attempt waits for still finishes."""
        self._caches.clear()
        wanted = {_source_id(one) for upstream in upstreams for one in upstream.each_key or (upstream,)}
        for id in self._sources.keys() - wanted:
            task = asyncio.get_running_loop().create_task(self._sources.pop(id).close(wait=True))
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
        which = upstream.name, upstream.key_number
        cache = self._caches.get(which)
        if cache is None or cache.upstream is not upstream:
            cache = self._caches[which] = _HeaderCache(upstream, self._source(upstream))
        return cache

    def _source(self, upstream: UpstreamConfig) -> CredentialSource:
        id = _source_id(upstream)
        source = self._sources.get(id)
        if source is None:
            spec = upstream.credential
            source = open_credential(
                spec,
                name=upstream.name,
                environment=self._env,
                network=upstream.network,
                lock=self._lock,
            )
            self._sources[id] = source
        return source


def _source_id(upstream: UpstreamConfig) -> _SourceId:
    return upstream.name, upstream.credential, upstream.network


def beta_features(upstream: UpstreamConfig, betas: Mapping[str, str]) -> str:
    """The beta features of the config and of the client, each once, separated by commas."""
    header = upstream_protocol(upstream.protocol).beta_header
    if not header:
        return ""
    names = [*upstream.headers.get(header, "").split(","), *betas.get(header, "").split(",")]
    return ",".join(dict.fromkeys(name.strip() for name in names if name.strip()))


def _headers(
    upstream: UpstreamConfig, url: str, body: bytes | None, token: Token, betas: Mapping[str, str]
) -> dict[str, str]:
    headers = _configured_headers(upstream, betas)
    bound = BoundCredential(token, upstream.base_url, upstream.protocol, upstream.auth)
    if body is None:
        return headers | bound.headers(url, headers=headers)
    known = _POSTED | headers
    return headers | bound.headers(url, method="POST", headers=known, body=body)


def _configured_headers(upstream: UpstreamConfig, betas: Mapping[str, str]) -> dict[str, str]:
    """The headers of the config, the protocol and the platform."""
    headers = dict(upstream.headers)
    wire = upstream_protocol(upstream.protocol)
    headers |= wire.headers(upstream.target(""))
    if features := beta_features(upstream, betas):
        headers[wire.beta_header] = features
    if upstream.hosting is not None:
        for name in upstream.hosting.without_headers:
            headers.pop(name, None)
        headers = upstream.hosting.headers | headers
    return headers
