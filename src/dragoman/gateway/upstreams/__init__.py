"""Calls of upstreams: their URLs, credentials, keys, lists of models, and the HTTP call itself."""
