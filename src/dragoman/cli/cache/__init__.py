"""`dragoman cache`: what the upstream cached of each turn of a session, and why not more."""
