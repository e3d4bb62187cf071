"""`dragoman serve`: runs the gateway."""
