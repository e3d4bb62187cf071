"""The key of `[upstreams.NAME]` for endpoints beside answers."""

from __future__ import annotations

from ..protocols.registry import served_protocols
from .nested_keys import ConfigKey, Keys
from .values import names

NAMES = tuple(dict.fromkeys(other.name for client in served_protocols() for other in client.endpoints.others))
OTHER_ENDPOINTS: Keys = {
    "other_endpoints": ConfigKey(
        names(NAMES, "endpoint"),
        "list of texts",
        "its provider's, else `[]`",
        f"Which of {', '.join(f'`{name}`' for name in NAMES)} go to this upstream if no route says where.",
    ),
}
