"""The least that could do the work: what Dragoman is compared with."""
