"""A model that needs no key and no network: it plays a small agent, and misbehaves on request.

It speaks every protocol natively. The model's name says how it behaves: `demo` is well behaved,
`demo-leak` writes its calls into the text, and so on; `BEHAVIOURS` is the whole table. Any name that does
not begin with `demo-` is well behaved.

`agent` decides what to say, `mischief` spoils calls, `trouble` spoils answers, `speech` puts them into a
protocol's words, `replies` are those words with their silences and breaks, `server` sends them.
"""

from .behaviours import BEHAVIOURS, Behaviour
from .model import ScriptedModel
from .replies import Cut, Reply, Wait
from .server import serve

__all__ = ["BEHAVIOURS", "Behaviour", "Cut", "Reply", "ScriptedModel", "Wait", "serve"]
