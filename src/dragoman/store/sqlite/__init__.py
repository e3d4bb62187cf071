"""The store over SQLite: one file that all processes of a machine share, or memory."""

from .schema import read_status
from .store import SqliteStore

__all__ = ["SqliteStore", "read_status"]
