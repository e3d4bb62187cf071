"""`dragoman init`: looks around, asks, and writes the first `dragoman.toml`."""
