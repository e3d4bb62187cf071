"""The vocabulary: errors, events (the neutral answer), messages (the neutral request), the order of events.

This package imports no other package of Dragoman.
"""
