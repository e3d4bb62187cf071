"""A client's request, read, with everything an attempt needs to know about the client."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from ...config.types import UpstreamConfig
from ...credentials.secret import Secret
from ...model.events import Usage
from ...model.messages import Request
from ...observe.tap import Track
from ...profiles import UNKNOWN, Arguments, Profile
from ...protocols.base import ClientProtocol, Freeform
from ...routing.conditions import RequestTraits
from ...store.memory import Memory
from ...store.responses import StoredResponse
from ..conversation import conversation_of
from ..upstreams.keyring import NO_BETAS


class IncomingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The same for every target that is tried."""

    id: str
    """The id of the exchange."""
    client: ClientProtocol
    request: Request
    """As the client sent it. Each attempt makes its own version for its target."""
    previous: StoredResponse | None
    """The stored response that `previous_response_id` names."""
    caller: Secret | None
    """The client's own key, for upstreams whose credential is `client`."""
    track: Track
    betas: Mapping[str, str] = NO_BETAS
    """Beta features that the client turned on, by header name (`beta_header`)."""
    arguments: Arguments = "live"
    freeform: Freeform = "custom"
    scope: str = ""
    """Fingerprint of the client's key. Stored state is only given back to the same scope."""
    session: str = ""
    """The client's own id for its conversation."""
    profile: Profile = UNKNOWN
    """The client, as far as it is known."""
    count: Callable[[UpstreamConfig, str, Usage], None]
    """Call this with the usage of a question that Dragoman itself asked a model."""
    memory: Memory | None = None
    """Holds responses that must not be stored, while the client's WebSocket is open."""

    def traits(self) -> RequestTraits:
        """The traits of the request that routes with conditions check."""
        return RequestTraits(self.request, self.profile)

    def conversation(self) -> str:
        """The key of `conversation_of`.

        A request with `previous_response_id` does not repeat the first message. The digest of the first
        stored item takes its place.
        """
        known = self.session or (self.previous.items[0] if self.previous and self.previous.items else "")
        return conversation_of(self.request, known)
