"""The protocols. Each folder holds one wire format, for clients and for upstreams."""
