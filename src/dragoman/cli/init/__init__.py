"""`dragoman init`: finds keys and model servers, asks which to use, and writes the first `dragoman.toml`."""
