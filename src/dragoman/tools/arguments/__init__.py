"""The arguments of a tool call: from fragments to corrected text, live or whole."""

from .assembly import LiveArguments, Mode, Outcome, WholeArguments, assemble

__all__ = ["LiveArguments", "Mode", "Outcome", "WholeArguments", "assemble"]
