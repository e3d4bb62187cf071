"""HTTP servers and clients that Dragoman could stand on, each alone."""
