"""The vocabulary: errors, neutral events, the neutral request, and the order of events. Imports nothing else of ours."""
