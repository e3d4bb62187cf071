"""`dragoman run` and `dragoman env`: agents wired to the gateway, and the user's own files left alone.

`clients` is the table of agents, one entry each; `wiring` is what an entry comes to for one gateway;
`gateway` finds the one that runs or starts one; `run` starts the agent; `shell` prints the same settings.
"""

from .clients import CLIENTS, client
from .shell import settings_of
from .start import Order, run

__all__ = ["CLIENTS", "Order", "client", "run", "settings_of"]
