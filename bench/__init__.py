"""Measurements. Only ratios taken in one run mean anything: these machines are noisy."""
