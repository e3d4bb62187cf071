"""The address of the database: how to connect, and how to name it without its password."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import conninfo

from ...credentials.secret import Secret
from ..types import StoreError

# The user's URL may set each of these. A dead server is noticed after seconds, not after the kernel's hours.
_DEFAULTS = {
    "connect_timeout": "5",
    "keepalives_idle": "30",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",
    "application_name": "dragoman",
}
_SECRETS = ("password", "sslpassword")
_SHOWN = ("user", "host", "port", "dbname")


class NotOpen(StoreError):
    """The database could not be reached yet. The store goes on trying."""


class PostgresAddress:
    """What the config says about the database. Raises StoreError if libpq does not understand it."""

    def __init__(self, url: Secret) -> None:
        try:
            parts: dict[str, Any] = conninfo.conninfo_to_dict(url.reveal())
        except psycopg.ProgrammingError:  # its text repeats the URL
            raise StoreError(
                "server.store is not an address of PostgreSQL: write it as "
                "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with % codes for special characters"
            ) from None
        self._hidden = tuple(str(parts[name]) for name in _SECRETS if parts.get(name))
        self.text = Secret(conninfo.make_conninfo("", **_DEFAULTS | parts))
        """For libpq."""
        self.shown = _shown(parts)

    def problem(self, error: BaseException) -> StoreError:
        """Turn `error` into one sentence: what, where, and what to do."""
        if isinstance(error, StoreError):
            return error
        message = " ".join(str(error).split()) or type(error).__name__
        for secret in self._hidden:
            message = message.replace(secret, "***")
        return StoreError(f"the store {self.shown} cannot be used: {_advice(error)} ({message[:300]})")


def _shown(parts: dict[str, Any]) -> str:
    user, host, port, name = (str(parts.get(part) or "") for part in _SHOWN)
    at = f"{user}@" if user else ""
    return f"postgresql://{at}{host or 'localhost'}{':' if port else ''}{port}/{name or user}"


# The first five characters of `sqlstate`, or the first two, and what to do.
_ADVICE = {
    "53100": "its disk is full: free some space, or shorten server.retention",
    "53300": "it has too many connections: raise max_connections, or put pgbouncer in front of it",
    "57P03": "it is starting or stopping: Dragoman tries again",
    "3D000": "the database does not exist: create it, or change server.store",
    "42501": "the user may not do this: make the user the owner of the database or of the schema dragoman",
    "25006": "it is a read-only replica: name the primary, or add target_session_attrs=read-write",
    "28": "it refuses the user or the password: check server.store",
    "08": "the connection was lost: Dragoman tries again",
    "57": "it ended the connection: Dragoman tries again",
}


# libpq gives no code for an error while it connects, only the server's words.
_WORDS = {
    "authentication failed": "28",
    'role "': "28",
    'database "': "3D000",
    "too many": "53300",
    "starting up": "57P03",
    "shutting down": "57P03",
    "No space left": "53100",
}


def _advice(error: BaseException) -> str:
    state = getattr(error, "sqlstate", None) or ""
    advice = _ADVICE.get(state) or _ADVICE.get(state[:2])
    if advice:
        return advice
    if word := next((word for word in _WORDS if word in str(error)), None):
        return _ADVICE[_WORDS[word]]
    if isinstance(error, (psycopg.OperationalError, TimeoutError, OSError)):
        return "it cannot be reached: check that it runs, and check server.store"
    return "PostgreSQL reports"
