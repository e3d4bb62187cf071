"""The helpers of the tests. The judges are in `dragoman.conform`, and import nothing they judge.

oracle           a client's bytes as the protocol's official SDK understands them
agree            whether two answers in neutral form say the same across protocols
sample_streams   well-formed answers of every protocol, for every pair of client and upstream
"""
