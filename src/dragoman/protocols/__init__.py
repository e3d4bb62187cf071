"""The wire formats: each folder holds one, as client and as upstream."""
