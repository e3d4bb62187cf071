"""The arguments of a tool call: from fragments to corrected text, live or whole."""

from .assembly import LiveArguments, Mode, Outcome, WholeArguments, assemble
from .fragments import Fragments

__all__ = ["Fragments", "LiveArguments", "Mode", "Outcome", "WholeArguments", "assemble"]
