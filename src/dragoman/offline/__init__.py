"""Test agents without a model: a gateway that answers from recordings, and a plugin for pytest."""
