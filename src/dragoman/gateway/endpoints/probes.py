"""`/livez`, `/readyz` and `/healthz`, for load balancers, clusters and people. They need no key.

They show what works and what does not, but not why: only the log names addresses.
"""

from __future__ import annotations

from ...transport.server import HttpRequest, HttpResponse, Route, json_response
from ..state import State

PROBES = ("/healthz", "/livez", "/readyz")


def routes(state: State) -> list[Route]:
    readiness = _Readiness(state)

    async def healthz(request: HttpRequest) -> HttpResponse:
        return json_response(
            {
                "status": "ok",
                "streams": state.observed.metrics.open_streams(),
                **_services(state),
                "receipts_lost": state.observed.metrics.lost_receipts(),
            }
        )

    async def livez(request: HttpRequest) -> HttpResponse:
        return json_response({"status": "ok"})

    async def readyz(request: HttpRequest) -> HttpResponse:
        reasons = readiness.reasons()
        body = {"status": "not ready" if reasons else "ready", "reasons": reasons, **_services(state)}
        return json_response(body, status=503 if reasons else 200)

    handlers = (healthz, livez, readyz)
    return [Route("GET", path, handler) for path, handler in zip(PROBES, handlers, strict=True)]


def _services(state: State) -> dict[str, str]:
    """The state of the services. Redis is named only if it is configured."""
    found = {"store": "failing" if state.store.problem or state.store_replaced else "ok"}
    if state.config.server.redis is not None:
        found["redis"] = "failing" if state.shared.problem else "ok"
        found["limits"] = "unshared" if state.limit_counters.problem or state.shared.problem else "shared"
    return found


class _Readiness:
    """Should this process get requests?

    A new replica whose store has never been usable should not: it knows neither the keys nor the
    conversations. A store that fails later is no reason: exchanges go on without it, and it fails for all
    replicas at once, so that a load balancer would have no gateway left. The same is true of Redis, always.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._store_seen = False
        self._update()

    def _update(self) -> None:
        """Was the store usable once? A request that has read its keys shows it, even without a probe then."""
        state = self._state
        usable = not state.store.problem or state.keys.read_once
        self._store_seen = self._store_seen or (usable and not state.store_replaced)

    def reasons(self) -> list[str]:
        state = self._state
        self._update()
        found: list[str] = []
        if state.lifecycle.draining or state.lifecycle.closing:
            found.append("the gateway stops")
        if not self._store_seen:
            why = "cannot be used" if state.store_replaced else "has not been reached, or is being migrated"
            found.append(f"the store {why}; the log says more")
        return found
