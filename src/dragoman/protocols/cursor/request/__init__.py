"""Cursor's requests: detects the protocol of each level, and uses that protocol's reader."""
