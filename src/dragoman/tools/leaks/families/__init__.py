"""The table's entries by kind: JSON between marks, markup, tokens, channels, and calls without marks."""
