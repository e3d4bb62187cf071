"""The formats, by kind: JSON between marks, markup, tokens, channels, message frames, calls without marks."""
