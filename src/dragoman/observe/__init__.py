"""What is known about exchanges: the tap, receipts, recordings, metrics, traces, logs and the inspector."""
