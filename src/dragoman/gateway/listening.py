"""The gateway on its port, from the first request to a shutdown that lets answers finish."""

from __future__ import annotations

from ..http.server import Listener
from .app import App
from .state import State


class Gateway:
    """One process's share of it."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._listener = Listener(App(state).answer, max_body=state.config.server.max_body)

    async def listen(self, host: str, port: int, *, shared_port: bool = False) -> None:
        await self._listener.listen(host, port, reuse_port=shared_port)

    @property
    def address(self) -> tuple[str, int]:
        return self._listener.address

    async def stop(self, grace: float) -> None:
        """Answers under way may take `grace` seconds; who only looks on is not waited for."""
        self._state.end_onlookers()
        try:
            await self._listener.stop(grace)
        finally:
            await self._state.close()
