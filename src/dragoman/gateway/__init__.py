"""The gateway: the core behind HTTP."""
