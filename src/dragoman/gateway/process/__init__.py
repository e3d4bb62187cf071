"""The process of the gateway: its event loop, listener, workers, and what processes tell each other."""
