"""What is seen of exchanges from outside: subscribers get a copy, and the core does not know they exist.

`Track` is what one exchange leaves behind as it goes; `Tap` hands new ones out and copies what they note to
whoever listens; `Ring` keeps the bytes of the last ones in memory.
"""

from .records import Answered, Asked, Begun, Broke, Came, Ended, Read, Record, Said, Searched, Setup, Went
from .redaction import Redactor, harmless_headers, harmless_path, sent_secrets
from .ring import Ring
from .stream_redaction import StreamSecrets, scrub_stream
from .subscribers import Ear, Tap
from .track import Track, Try

__all__ = [
    "Answered",
    "Asked",
    "Begun",
    "Broke",
    "Came",
    "Ear",
    "Ended",
    "Read",
    "Record",
    "Redactor",
    "Ring",
    "Said",
    "Searched",
    "Setup",
    "StreamSecrets",
    "Tap",
    "Track",
    "Try",
    "Went",
    "harmless_headers",
    "harmless_path",
    "scrub_stream",
    "sent_secrets",
]
