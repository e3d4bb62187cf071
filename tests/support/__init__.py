"""Helpers of the tests. The judges are in `dragoman.conform`, and import no code that they judge.

oracle           an answer's bytes as the protocol's official SDK reads them
agree            compares two answers in neutral form across protocols
sample_streams   well-formed answers of every protocol, for every pair of client and upstream
"""
