"""The credentials of all upstreams: opened when first asked for, let go with their config."""

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


class Sent(dict[str, str]):
    """The headers of an upstream's requests."""

    __slots__ = ("secrets", "shown", "url")

    def __init__(self, headers: Mapping[str, str], url: str) -> None:
        super().__init__(headers)
        self.shown = harmless_headers(headers)
        """As they may be shown."""
        self.url = harmless_path(url)
        """Where they are sent, as it may be shown."""
        self.secrets = sent_secrets(headers, url)
        """What must not be shown of both."""


NOTHING_SENT = Sent({}, "")
NO_BETAS: Mapping[str, str] = MappingProxyType({})


class _Way:
    """How one upstream is asked: its credential, and the headers that were written last with it."""

    __slots__ = ("betas", "headers", "passes_on", "secret", "source", "upstream", "url")

    def __init__(self, upstream: UpstreamConfig, source: CredentialSource) -> None:
        self.upstream = upstream
        self.source = source
        self.passes_on = for_caller(source, None) is not source
        """Is it the caller's own key that is sent?"""
        self.url: str = ""
        self.betas = NO_BETAS
        self.secret: Secret | None = None
        self.headers = NOTHING_SENT

    def written(self, url: str, token: Token, betas: Mapping[str, str]) -> Sent:
        """The same as for the request before, as long as nothing has changed."""
        if url != self.url or token.secret is not self.secret or betas != self.betas:
            self.headers = Sent(_headers(self.upstream, url, token, betas), url)
            self.url, self.betas, self.secret = url, betas, token.secret
        return self.headers


class Keyring:
    """One source per upstream, as long as what its config says of the credential stays the same."""

    def __init__(
        self, env: Mapping[str, str], learn: Callable[[Iterable[Secret]], None] = lambda secrets: None
    ) -> None:
        """`learn` is told every key that is used, before it is."""
        self._env = env
        self._learn = learn
        self._sources: dict[_Key, CredentialSource] = {}
        self._ways: dict[str, _Way] = {}
        """By the name of the upstream."""
        self._leaving: set[asyncio.Task[None]] = set()

    def at_hand(
        self, upstream: UpstreamConfig, url: str, caller: Secret | None, betas: Mapping[str, str]
    ) -> Sent | None:
        """What `headers` gave for the request before, if it would give the same now, and at once."""
        way = self._ways.get(upstream.name)
        if way is None or way.upstream is not upstream:
            return None
        token = (for_caller(way.source, caller) if way.passes_on else way.source).cached()
        if token is None or token.secret is not way.secret or url != way.url or betas != way.betas:
            return None
        if token.secret is not None:
            self._learn((token.secret,))
        return way.headers

    async def headers(
        self,
        upstream: UpstreamConfig,
        url: str,
        *,
        refused: Mapping[str, str] | None = None,
        caller: Secret | None = None,
        betas: Mapping[str, str] = NO_BETAS,
    ) -> Sent:
        """What a request to `upstream` is sent with: its credential, fresh, and what its config adds.

        `refused` are the headers it was asked with and would not take: the credential is read anew, unless
        there is another one by now. `betas` are features the client opted into (`beta_header`): its request
        may hold fields that need them.
        """
        way = self._way(upstream)
        source = for_caller(way.source, caller)
        headers = self._written(way, url, await source.token(), betas)
        if refused is not None and headers == refused:
            headers = self._written(way, url, await source.token(force=True), betas)
        return headers

    def _written(self, way: _Way, url: str, token: Token, betas: Mapping[str, str]) -> Sent:
        if token.secret is not None:
            self._learn((token.secret,))
        return way.written(url, token, betas)

    def keep_only(self, upstreams: Iterable[UpstreamConfig]) -> None:
        """The others are let go. Answers under way may wait for a read of theirs: that one still lands."""
        self._ways.clear()
        kept = {_key(upstream) for upstream in upstreams}
        for key in self._sources.keys() - kept:
            task = asyncio.get_running_loop().create_task(self._sources.pop(key).close(wait=True))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        """No read outlives the gateway."""
        for task in tuple(self._leaving):
            task.cancel()
        await asyncio.gather(*self._leaving, return_exceptions=True)
        for source in self._sources.values():
            await source.close()

    def _way(self, upstream: UpstreamConfig) -> _Way:
        way = self._ways.get(upstream.name)
        if way is None or way.upstream is not upstream:
            way = self._ways[upstream.name] = _Way(upstream, self._source(upstream))
        return way

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
    spoken = protocol(upstream.protocol)
    headers |= spoken.headers(upstream.target(""))
    if spoken.beta_header:
        names = [
            *headers.get(spoken.beta_header, "").split(","),
            *betas.get(spoken.beta_header, "").split(","),
        ]
        wanted = dict.fromkeys(name.strip() for name in names if name.strip())
        if wanted:
            headers[spoken.beta_header] = ",".join(wanted)
    bound = BoundCredential(token, upstream.base_url, upstream.protocol, upstream.auth)
    return headers | bound.headers(url)
