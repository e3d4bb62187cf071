"""`dragoman keys`: makes, lists, revokes and rotates keys."""
