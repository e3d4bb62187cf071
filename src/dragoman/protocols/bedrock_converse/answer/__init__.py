"""Converse: reading answers."""
