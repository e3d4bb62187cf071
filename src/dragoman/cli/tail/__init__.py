"""`dragoman tail`: exchanges of a running gateway in the terminal, as they happen."""
