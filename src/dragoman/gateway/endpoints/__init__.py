"""Endpoints beside the exchanges: their receipts, usage, scores, sessions, models, health, the inspector."""
