"""The vocabulary: errors, events, messages (the neutral request) and the order of events.

It imports nothing else of ours.
"""
