"""A scripted model: needs no key and no network, calls tools, and misbehaves on request.

It speaks every protocol. The model's name chooses its behaviour: `demo` is well behaved, `demo-leak` writes
its calls as text, and so on; `BEHAVIOURS` is the whole table. Any name that does not begin with `demo-` is
well behaved.

`agent` decides the next turn, `broken_calls` damages calls, `broken_answers` damages whole answers,
`answer_bytes` encodes them in a protocol, `replies` adds pauses and broken connections, `server` sends them.
"""

from .behaviours import BEHAVIOURS, Behaviour
from .model import ScriptedModel
from .replies import Cut, Reply, Wait
from .server import serve

__all__ = ["BEHAVIOURS", "Behaviour", "Cut", "Reply", "ScriptedModel", "Wait", "serve"]
