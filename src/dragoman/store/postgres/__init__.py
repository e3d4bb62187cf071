"""The store over PostgreSQL: one database that the gateways of several machines share."""

from .status import read_status
from .store import PostgresStore

__all__ = ["PostgresStore", "read_status"]
