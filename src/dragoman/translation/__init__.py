"""One answer translated: bytes of the upstream in, bytes for the client out. No I/O."""
