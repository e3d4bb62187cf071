"""Dragoman stands between coding agents and models: every tool call arrives whole, valid and once.

Glossary. Each word has one meaning everywhere:

- **protocol**: a wire format: `anthropic`, `openai-chat`, `openai-responses`, `gemini`. `cursor` is a reply
  format only: no upstream speaks it. `bedrock-converse` is for upstreams only.
- **client**: the agent or SDK that sends a request. **profile**: facts about a known client, as data.
- **upstream**: a configured model endpoint: protocol, base URL, credential.
- **key**: a named credential of the gateway, for a person, a team or a machine.
- **route**: maps the client's model name to targets. **target**: one model of one upstream.
- **exchange**: one request and its answer, from the client's first byte to the last. **attempt**: one try at
  one target. **translation**: one answer on its way from the upstream's bytes to the client's.
- **session**: the exchanges of one conversation.
- **frame**: one piece of JSON of an answer, as the wire framed it. **event**: one neutral thing in an answer:
  text grew, a call started, usage is known, the answer failed.
- **block**: a part of an answer that grows: text, reasoning, one tool call.
- **assembly**: how a client gets tool arguments: `live` (fragments as they come) or `whole` (in one piece).
- **rule**: a named, pure function that mends arguments that do not fit the client's schema.
- **ghost**: a call without a name, or with an id that was used before. **leak**: a call that a model wrote
  as text.
- **seal**: opaque reasoning (a signature, encrypted content) in an envelope that names its issuer.
- **notice**: a part of a request that could not be carried over. **receipt**: what happened to an exchange.
- **tap**: the live copy of exchanges for subscribers. **recording**: an exchange's bytes in a file.
- **extras**: members of a JSON object that Dragoman does not understand, with the name of their protocol.
  Only the writer or encoder of that protocol puts them back.

The first level of this package is the architecture; ARCHITECTURE.md explains it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__
from .model.errors import BadRequest, DragomanError, OrderError, UpstreamError

if TYPE_CHECKING:
    from .library import ToolCallBuffer, ToolLoop
    from .model.messages import Request, Tool
    from .protocols.base import Outgoing, Target
    from .protocols.common.collect import Answer, collect
    from .protocols.registry import PROTOCOLS, protocol
    from .translation.translate import translate
    from .translation.translation import Options, Translation

__all__ = [
    "PROTOCOLS",
    "Answer",
    "BadRequest",
    "DragomanError",
    "Options",
    "OrderError",
    "Outgoing",
    "Request",
    "Target",
    "Tool",
    "ToolCallBuffer",
    "ToolLoop",
    "Translation",
    "UpstreamError",
    "__version__",
    "collect",
    "protocol",
    "translate",
]

# Imported on first use: `--help` and shell completion, which run without them, stay fast.
_HOMES = {
    "library": ("ToolCallBuffer", "ToolLoop"),
    "translation.translation": ("Translation", "Options"),
    "model.messages": ("Request", "Tool"),
    "protocols.base": ("Outgoing", "Target"),
    "protocols.common.collect": ("Answer", "collect"),
    "protocols.registry": ("PROTOCOLS", "protocol"),
    "translation.translate": ("translate",),
}
_FORMER_NAMES = {"Exchange": "Translation"}
"""Names that earlier versions exported."""


def __getattr__(name: str) -> Any:
    name = _FORMER_NAMES.get(name, name)
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{home}", __name__), name)
    return value


def __dir__() -> list[str]:
    return __all__
