"""Benchmarks. Only ratios within one run are meaningful, because machines are noisy."""
