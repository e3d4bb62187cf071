"""Responses requests: `read` a client's, `write` one for an upstream."""
