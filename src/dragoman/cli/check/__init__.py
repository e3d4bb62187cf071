"""`dragoman check`: reads the config and tries every upstream."""
