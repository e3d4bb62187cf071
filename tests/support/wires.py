"""The names of the protocols, for tests that are about one of them."""

from dragoman.protocols import registry

ANTHROPIC = "anthropic"
CHAT = "openai-chat"
RESPONSES = "openai-responses"
GEMINI = "gemini"
CURSOR = "cursor"
PROTOCOLS = tuple(registry.PROTOCOLS)
"""Those that upstreams speak."""
