"""Converse: writing requests."""
