"""A client's request, read, with everything an attempt needs to know about the client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ...model.messages import Request
from ...observe.tap import Track
from ...profiles import Profile
from ...protocols.base import ClientProtocol
from ...routing.conditions import RequestTraits
from ...store.memory import Memory
from ...store.responses import StoredResponse
from ..client_settings import ClientSettings
from ..conversation import conversation_of

if TYPE_CHECKING:
    from .exchange import Exchange


class IncomingRequest(msgspec.Struct, frozen=True):
    """The same for every target that is tried."""

    exchange: Exchange
    request: Request
    """As the client sent it. Each attempt makes its own version for its target."""
    previous: StoredResponse | None
    """The stored response that `previous_response_id` names."""
    profile: Profile
    """The client, as far as it is known."""
    settings: ClientSettings
    memory: Memory | None
    """Holds responses that must not be stored, while the client's WebSocket is open."""

    @property
    def id(self) -> str:
        """The id of the exchange."""
        return self.exchange.track.id

    @property
    def client(self) -> ClientProtocol:
        return self.exchange.client

    @property
    def track(self) -> Track:
        return self.exchange.track

    @property
    def scope(self) -> str:
        """Stored state is only given back to the same scope."""
        return self.exchange.identity.scope

    def traits(self) -> RequestTraits:
        """The traits of the request that routes with conditions check."""
        return RequestTraits(self.request, self.profile)

    def conversation(self) -> str:
        """The key of `conversation_of`.

        A request with `previous_response_id` does not repeat the first message. The digest of the first
        stored item takes its place.
        """
        previous = self.previous.items[0] if self.previous and self.previous.items else ""
        return conversation_of(self.request, self.exchange.caller.session or previous)
