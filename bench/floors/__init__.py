"""Floors: minimal reference programs that Dragoman is compared with."""
