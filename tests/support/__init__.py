"""The judges of what a client receives. Nothing here may import the code it judges.

sse              bytes to events, as a client's own reader does it
neutral          a client's bytes reduced to the neutral form of the corpus
laws             what the bytes do that the client's protocol does not allow
oracle           the same bytes as the protocol's official SDK understands them
corpus           the recorded failures, and what must come out of each
sample_streams   well-formed answers of every protocol, for every pair of client and upstream
"""
