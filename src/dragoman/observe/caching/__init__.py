"""Why an upstream's prompt cache missed: fingerprints of requests, and what differs between two of them."""

from .explain import CacheTurn, Explanation, explain, explain_all
from .prints import PromptPrint, prompt_print

__all__ = ["CacheTurn", "Explanation", "PromptPrint", "explain", "explain_all", "prompt_print"]
