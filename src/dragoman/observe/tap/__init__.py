"""The live copy of exchanges for subscribers. The core does not know about them.

`Track` records one exchange. `Tap` creates the tracks and copies their records to the subscriptions. `Ring`
keeps the bytes of the last exchanges in memory.
"""

from .attempt_track import AttemptTrack
from .records import (
    ClientBytes,
    ClientRequest,
    ExchangeBegan,
    ExchangeEnded,
    Record,
    ReplaySetup,
    SearchResults,
    UpstreamBytes,
    UpstreamFailure,
    UpstreamRequest,
    UpstreamStatus,
)
from .redaction import Redactor, harmless_headers, harmless_path, sent_secrets
from .ring import Ring
from .stream_redaction import StreamSecrets, scrub_stream
from .subscribers import Subscription, Tap
from .track import OK, RUNNING, Track

__all__ = [
    "OK",
    "RUNNING",
    "AttemptTrack",
    "ClientBytes",
    "ClientRequest",
    "ExchangeBegan",
    "ExchangeEnded",
    "Record",
    "Redactor",
    "ReplaySetup",
    "Ring",
    "SearchResults",
    "StreamSecrets",
    "Subscription",
    "Tap",
    "Track",
    "UpstreamBytes",
    "UpstreamFailure",
    "UpstreamRequest",
    "UpstreamStatus",
    "harmless_headers",
    "harmless_path",
    "scrub_stream",
    "sent_secrets",
]
