"""Translates one answer: the upstream's bytes go in, the client's bytes come out. No I/O."""
