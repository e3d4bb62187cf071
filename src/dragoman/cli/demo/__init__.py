"""`dragoman demo`: the gateway with a scripted model behind it."""
