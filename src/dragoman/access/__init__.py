"""Access control: identities, keys, limits and budgets.

`keys.py` finds the identity behind a request's key. `limiter.py` reserves what a request may use before it
runs, and settles the difference afterwards. `meters.py` defines what each limit counts.
"""
