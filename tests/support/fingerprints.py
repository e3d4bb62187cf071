"""Hashes of Dragoman's output for fixed inputs, each written twice. As a program, it prints them."""

import json
import sys
from collections.abc import Iterator
from hashlib import sha256

from dragoman.protocols.registry import CLIENTS

from .agent_requests import AGENTS
from .exchanges import exchange, run
from .requests import posted, sent, wire
from .sample_streams import SAMPLES, TOOLS
from .scripted_talk import question, reply_to
from .scripted_talk import sent as said
from .wires import PROTOCOLS


def requests() -> Iterator[tuple[str, bytes]]:
    for name, sample in AGENTS.items():
        for upstream in PROTOCOLS:
            outgoing = sent(posted(sample), upstream)
            notices = repr(outgoing.notices).encode()
            yield f"request of {name} to {upstream}", wire(outgoing.body) + notices


def answers() -> Iterator[tuple[str, bytes]]:
    for upstream in PROTOCOLS:
        for kind, sample in SAMPLES[upstream].items():
            for client in CLIENTS:
                for stream in (True, False):
                    got = run(exchange(upstream, client, TOOLS, stream=stream), [sample.stream])
                    yield f"{kind} of {upstream} to {client}, stream={stream}", got


def scripted() -> Iterator[tuple[str, bytes]]:
    for name in PROTOCOLS:
        yield f"scripted {name}", said(reply_to(name, question(stream=True)))


def fingerprints() -> dict[str, list[str]]:
    """For each output: the hash of the first run, without a cache, and of the second."""
    found: dict[str, list[str]] = {}
    for _ in range(2):
        for make in (requests, answers, scripted):
            for name, data in make():
                found.setdefault(name, []).append(sha256(data).hexdigest())
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(fingerprints()))
