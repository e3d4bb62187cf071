"""Framing: bytes in, frames out. No I/O happens here."""
