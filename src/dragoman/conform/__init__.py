"""The conformance suite: checks whether an endpoint keeps the laws of its protocol.

The judges import nothing of Dragoman except each other. Shared code would hide shared bugs:

sse       parses server-sent events strictly by the standard
neutral   reduces a client's bytes to the neutral form of the corpus (`reduce/` has one module per protocol)
laws      finds the laws of the client's protocol that the bytes break
corpus    recorded failures of providers (`cases/`), and the expected result of each
compare   compares an answer in neutral form with the expected result of a case
verdict   runs all judges on one answer

The rest is `dragoman conform`, which runs the judges on an endpoint:

client           sends one request to the endpoint; `sample_requests` has the requests
probes           the trials for any endpoint
corpus_trials    the trials for a gateway whose upstream is `upstream`, which plays the cases
report           the result, law by law; `table` prints it
"""
