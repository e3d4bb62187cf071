"""One module per protocol, named like its folder in `protocols/`. Each has an `ADAPTER` for its SDK."""
