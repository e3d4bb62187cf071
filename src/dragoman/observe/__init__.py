"""Observe exchanges: the tap, receipts, usage, scores, sessions, metrics, traces, logs, the inspector."""
