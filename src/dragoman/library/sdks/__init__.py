"""One module per protocol, named like its folder in `protocols/`, with an `ADAPTER` for its SDK."""
