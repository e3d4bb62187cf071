"""Gemini requests: `read` reads a client's request, `write` writes one for an upstream."""
