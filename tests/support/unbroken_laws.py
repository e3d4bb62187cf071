"""Finds laws that no spoiled answer breaks: such a law may never be checked."""

import json
from collections.abc import Mapping

from dragoman.conform import laws
from dragoman.conform.laws import framing

from .edited_streams import Spoil, spoiled
from .sample_streams import SAMPLES

Table = Mapping[str, tuple[str, Spoil, str]]

_SHARED = {*framing.STREAM} - {framing.SHAPE}
"""Broken in the tests of the framing, for every protocol."""


def unbroken(protocol: str, streams: Table, bodies: Table) -> set[str]:
    """The protocol's own laws that no entry of the tables breaks."""
    judge = laws.judge_of(protocol)
    found = {
        broken.law
        for kind, spoil, _ in streams.values()
        for broken in laws.check(
            protocol, spoiled(protocol, SAMPLES[protocol][kind].stream, spoil), stream=True
        )
    }
    for kind, spoil, _ in bodies.values():
        value = json.loads(SAMPLES[protocol][kind].whole or b"")
        spoil(value)
        found |= {broken.law for broken in laws.check(protocol, json.dumps(value).encode(), stream=False)}
    assert found <= {*judge.laws_of_streams, *judge.laws_of_bodies}
    return {law.name for law in {*judge.laws_of_streams} - found - _SHARED}
