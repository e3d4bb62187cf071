"""Dragoman stands between coding agents and models: every tool call arrives whole, valid and once.

The words used everywhere:

- **protocol**: a wire format: `anthropic`, `openai-chat`, `openai-responses`, `gemini`;
  `cursor` is one that clients are answered in and no upstream speaks.
- **client** and **upstream**: who asks, and who answers. Each speaks one protocol.
- **exchange**: one request and its answer. `Exchange` turns an upstream's bytes into a client's.
- **event**: one neutral thing in an answer: text grew, a call started, usage is known, it failed.
- **rule**: a named, pure step that mends a call's arguments when they do not fit the client's schema.
- **receipt**: what became of a call: what came, what went, which rules fired and why.
- **seal**: opaque reasoning that goes back to the upstream that issued it, and to nobody else.

The layers, from the bottom: `errors`, `events`, `messages`, `order` are the language; `wire` reads bytes;
`protocols` speak the formats; `tools` make calls right; `exchange` is the heart that joins them.
None of it does I/O.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__
from .model.errors import BadRequest, DragomanError, OrderError, UpstreamError

if TYPE_CHECKING:
    from .model.messages import Request, Tool
    from .protocols.base import Outgoing, Target
    from .protocols.common.collect import Answer, collect
    from .protocols.registry import PROTOCOLS, protocol
    from .translation.exchange import Exchange, Options
    from .translation.translate import translate

__all__ = [
    "PROTOCOLS",
    "Answer",
    "BadRequest",
    "DragomanError",
    "Exchange",
    "Options",
    "OrderError",
    "Outgoing",
    "Request",
    "Target",
    "Tool",
    "UpstreamError",
    "__version__",
    "collect",
    "protocol",
    "translate",
]

# Loaded when they are first asked for: the command line answers `--help`, and every Tab, without them.
_HOMES = {
    "translation.exchange": ("Exchange", "Options"),
    "model.messages": ("Request", "Tool"),
    "protocols.base": ("Outgoing", "Target"),
    "protocols.common.collect": ("Answer", "collect"),
    "protocols.registry": ("PROTOCOLS", "protocol"),
    "translation.translate": ("translate",),
}


def __getattr__(name: str) -> Any:
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{home}", __name__), name)
    return value


def __dir__() -> list[str]:
    return __all__
