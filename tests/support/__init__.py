"""The helpers of the tests. The judges themselves are `dragoman.conformance`, which knows nothing of what it judges.

oracle           a client's bytes as the protocol's official SDK understands them
agree            whether two answers in neutral form say the same across protocols
sample_streams   well-formed answers of every protocol, for every pair of client and upstream
"""
