"""Makes the tool calls of one answer whole, valid and unique. Gateway and library share this code."""
