"""The arguments of a tool call: from fragments to corrected text, live or whole."""

from .assembly import LiveArguments, Mode, Outcome, WholeArguments, assemble
from .fragments import Fragments
from .held import HeldArguments

__all__ = ["Fragments", "HeldArguments", "LiveArguments", "Mode", "Outcome", "WholeArguments", "assemble"]
