"""The conformance suite: what a client is owed, and whether an endpoint gives it.

The judges import nothing of Dragoman but each other, so that they share no mistake with what they judge:

sse       bytes to events, as a client's own reader does it
neutral   a client's bytes reduced to the neutral form of the corpus (`reduce/` has one reader per protocol)
laws      what the bytes do that the client's protocol does not allow, law by law
corpus    recorded failures (`cases/`), and what must come out of each
compare   whether an answer in neutral form is what a case expects
verdict   one answer before all of them

The rest is `dragoman conform`, which puts an endpoint before them:

asking    one request to the endpoint; `questions` are what is asked
probes    the trials any endpoint can be put to
playing   the trials of a gateway that asks `upstream`, which plays the cases
report    what was found out, law by law; `table` shows it
"""
