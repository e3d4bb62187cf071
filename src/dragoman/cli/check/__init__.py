"""`dragoman check`: reads the config and sends one request to every upstream."""
