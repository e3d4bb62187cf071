"""The life of a call: its states, and the table of legal changes.

`ActiveCall.become` applies the table. Nothing else changes the state of a call.
"""

from __future__ import annotations

from enum import Enum


class Life(Enum):
    """What the client has of a call, and whether the upstream ended it."""

    HELD = "held"
    """The client has nothing of it so far."""
    SHOWN = "shown"
    """The client has its start, and gets its arguments as they become certain."""
    HELD_IN_DOUBT = "held, in doubt"
    """Held. The upstream ended it, but its arguments look cut: the stop reason or another block will tell."""
    SHOWN_IN_DOUBT = "shown, in doubt"
    """The same for a call that the client has."""
    READY = "ready"
    """The upstream ended it. It is held until the turn is over: to ask for it again, or to run it here."""
    ENDED = "ended"
    """The client has all of it."""
    CUT = "cut"
    """The client has its arguments as far as they arrived."""
    BARE = "bare"
    """The client has its start, and none of its arguments could be read."""
    UNREADABLE = "unreadable"
    """The client never gets it, and the answer fails: its arguments cannot be read."""
    DROPPED = "dropped"
    """The client never gets it. The receipt says why."""


LEGAL: dict[Life, frozenset[Life]] = {
    Life.HELD: frozenset({Life.SHOWN, Life.HELD_IN_DOUBT, Life.READY, Life.UNREADABLE, Life.DROPPED}),
    Life.HELD_IN_DOUBT: frozenset({Life.SHOWN_IN_DOUBT, Life.READY, Life.DROPPED}),
    Life.SHOWN: frozenset({Life.SHOWN_IN_DOUBT, Life.ENDED, Life.CUT, Life.BARE}),
    Life.SHOWN_IN_DOUBT: frozenset({Life.ENDED, Life.CUT, Life.BARE}),
    Life.READY: frozenset({Life.SHOWN, Life.UNREADABLE, Life.DROPPED}),
    Life.ENDED: frozenset(),
    Life.CUT: frozenset(),
    Life.BARE: frozenset(),
    Life.UNREADABLE: frozenset(),
    Life.DROPPED: frozenset(),
}

IN_DOUBT = frozenset({Life.HELD_IN_DOUBT, Life.SHOWN_IN_DOUBT})
UNSEEN = frozenset({Life.HELD, Life.HELD_IN_DOUBT, Life.READY})
"""The client has nothing of the call, and may still get it."""
OVER = frozenset(state for state, next_states in LEGAL.items() if not next_states)
BROKEN = frozenset({Life.CUT, Life.BARE, Life.UNREADABLE})
REPEATABLE = frozenset(Life) - {Life.HELD, Life.HELD_IN_DOUBT, Life.UNREADABLE, Life.DROPPED}
"""A later call may be a copy of a call in one of these states."""
