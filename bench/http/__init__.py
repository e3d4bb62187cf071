"""HTTP servers and clients that Dragoman could use, each measured alone."""
