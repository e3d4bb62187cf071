"""One attempt of an exchange: one target, one key. What attempts for answers and passing attempts share."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from ...credentials import CredentialError
from ...model.events import NO_USAGE, Failed, Usage
from ...observe.tap import ReplaySetup
from ...observe.tracing import AttemptTrace
from ...protocols.base import Target
from ...protocols.common import failures
from ...protocols.common.failures import UpstreamFailed
from ...routing.router import ChosenTarget
from ...transport.client import Upload
from ...transport.server import HttpAnswer
from ..upstreams.call import UpstreamCall
from ..upstreams.keyring import NO_OUTGOING_HEADERS, OutgoingHeaders

if TYPE_CHECKING:
    from .exchange import Exchange

KEPT = 1024 * 1024
"""Bytes of a passed body that the ring and recordings keep. A longer one is only counted: a file would
displace everything else."""


class Attempt:
    """One attempt at one target. `Exchange` runs it."""

    def __init__(self, exchange: Exchange, choice: ChosenTarget, trace: AttemptTrace | None) -> None:
        self.sent_headers = NO_OUTGOING_HEADERS
        self.has_no_key = False
        """The upstream's key could not be read, so nothing was sent."""
        self.failure: Failed | None = None
        """The failure that broke off an answer of which the client has got a part."""
        self._exchange = exchange
        self._state = exchange.state
        self._track = exchange.track
        self._choice = choice
        self._trace = trace

    async def run(self, refused: OutgoingHeaders | None) -> None:
        """Ask the upstream, and give the client its answer except the end.

        Raises `UpstreamFailed` only while the client has got nothing. `refused` are the headers that this
        upstream has just answered with 401 or 403: they make the keyring read the credential again.
        """
        raise NotImplementedError

    def would_differ(self, target: Target) -> bool:
        """Would the request's bytes be different if it were written for `target`?"""
        return False

    def count(self, *, left: bool) -> Usage:
        """Count what was used for the limits of the key, and return the upstream's own counts.

        `left`: the client did not wait for the end.
        """
        return NO_USAGE

    async def finish(self) -> HttpAnswer:
        """Send the end of the answer."""
        raise NotImplementedError

    async def _call(
        self,
        url: str,
        body: bytes | Upload,
        headers: Awaitable[OutgoingHeaders],
        setup: ReplaySetup | None = None,
        *,
        again: bool = False,
    ) -> UpstreamCall:
        """A call of the upstream, authenticated and recorded. `setup` and `again`: see the records."""
        try:
            sent = self.sent_headers = await headers
        except CredentialError as error:
            if error.fault == "client":
                raise
            self.has_no_key = True
            raise UpstreamFailed(failures.from_exception(error), retryable=False) from None
        self._track.record_upstream_request(
            sent.redacted_url,
            sent.redacted,
            body if setup is not None and isinstance(body, bytes) else recordable(body),
            setup,
            again=again,
            key=sent.credential,
            secrets=sent.secrets,
        )
        upstream, method = self._choice.upstream, self._exchange.http.method if setup is None else "POST"
        traced = sent if self._trace is None else {**sent, **self._trace.headers}
        return UpstreamCall(self._state.upstreams.pool, upstream, url, body, traced, method, self._track)


def recordable(body: bytes | Upload) -> bytes:
    """What is kept of a body that passes as it is."""
    return body if isinstance(body, bytes) and len(body) <= KEPT else b""
