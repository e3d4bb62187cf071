"""Retention of stored data, from the config."""

from __future__ import annotations

from ...config.secret_reference import SecretReference
from ...config.types import Config
from ...recording.retention import RecordingLimits
from ...store import OWNERS, Retention, RetentionRule

_FILE_SIZE = 1 << 30
"""The most bytes of a store in a file, unless the config says otherwise."""
_UNLIMITED = 1 << 62


def retention_of(config: Config) -> Retention:
    """What the store keeps. Age and size limit the receipts; their number has no limit."""
    server = config.server
    usage = max(Retention().usage, server.retention)
    return Retention(
        entries=RetentionRule(seconds=server.retention),
        receipts=RetentionRule(seconds=server.retention, rows=_UNLIMITED),
        # A file stays at its upstream until somebody deletes it. Each look at it renews the entry.
        namespaces={OWNERS: RetentionRule(seconds=usage)},
        usage=usage,
        bytes=server.store_size or (_UNLIMITED if isinstance(server.store, SecretReference) else _FILE_SIZE),
    )


def failure_limits(config: Config) -> RecordingLimits:
    return RecordingLimits(config.server.retention, config.server.keep_failed)


def recording_limits(config: Config) -> RecordingLimits:
    return RecordingLimits(config.server.record_retention, config.server.record_size)
