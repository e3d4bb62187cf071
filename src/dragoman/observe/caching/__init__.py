"""Why an upstream's prompt cache missed: fingerprints of requests, and what differs between two of them."""

from .explain import CacheTurn, Explanation, explain, explain_all
from .fingerprints import PromptFingerprint, prompt_fingerprint

__all__ = ["CacheTurn", "Explanation", "PromptFingerprint", "explain", "explain_all", "prompt_fingerprint"]
