"""`dragoman run` and `dragoman env`: start an agent with the gateway. The user's own files do not change.

`agents` is the table of agents, one entry each. `wiring` turns an entry into settings for one gateway.
`gateway` finds the running gateway or starts one. `start` starts the agent. `shell` prints the same settings.
"""
