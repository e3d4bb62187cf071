"""Fuzzed upstream bytes: no exception, a legal answer for the client, one end, a reproducible result."""

from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from support import mutations
from support.exchanges import exchange, run
from support.fuzzing import fuzz
from support.sample_streams import CUSTOM_TOOL, SAMPLES, TOOLS

from dragoman.conform import laws
from dragoman.protocols.registry import PROTOCOLS

OFFERED = [*TOOLS, {"name": CUSTOM_TOOL, "kind": "custom"}]


class Case(NamedTuple):
    client: str
    stream: bool
    mode: str
    chunks: list[bytes]


def cases(bodies: st.SearchStrategy[bytes]) -> st.SearchStrategy[Case]:
    return st.builds(
        Case,
        st.sampled_from(list(PROTOCOLS)),
        st.booleans(),
        st.sampled_from(["live", "live", "whole"]),
        bodies.flatmap(mutations.chunked),
    )


def survive(upstream: str, case: Case) -> None:
    def answer() -> bytes:
        it = exchange(upstream, case.client, OFFERED, stream=case.stream, mode=case.mode)
        out = run(it, case.chunks)
        assert it.over
        assert it.feed(b"data: {}\n\n") == it.close() == b""
        return out

    out = answer()
    assert complaints(upstream, case, out) == []
    assert answer() == out


def complaints(upstream: str, case: Case, out: bytes) -> list[laws.Breach]:
    found = laws.check(case.client, out, stream=case.stream)
    if upstream == case.client:
        # An unknown stop reason passes to the client (law 46).
        found = [complaint for complaint in found if "unknown stop_reason" not in str(complaint)]
    return found


def streams(upstream: str) -> st.SearchStrategy[bytes]:
    return st.sampled_from([sample.stream for sample in SAMPLES[upstream].values()])


def wholes(upstream: str) -> st.SearchStrategy[bytes]:
    return st.sampled_from([s.whole for s in SAMPLES[upstream].values() if s.whole is not None])


@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_raw_bytes(upstream: str) -> None:
    pieces = st.sampled_from(
        [b"data: ", b"event: ", b"\n", b"\r\n", b"\n\n", b"{", b"}", b"[", b'"', b"[DONE]"]
    )
    noise = st.lists(st.one_of(pieces, st.binary(max_size=8)), max_size=30).map(b"".join)
    fuzz(cases(noise), lambda case: survive(upstream, case), 100)


@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_spoiled_bytes(upstream: str) -> None:
    bodies = st.one_of(streams(upstream), wholes(upstream)).flatmap(mutations.spoiled_bytes)
    fuzz(cases(bodies), lambda case: survive(upstream, case), 150)


@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_shuffled_frames(upstream: str) -> None:
    bodies = streams(upstream).flatmap(mutations.shuffled_frames)
    fuzz(cases(bodies), lambda case: survive(upstream, case), 200)


@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_wrong_types_in_a_stream(upstream: str) -> None:
    bodies = streams(upstream).flatmap(mutations.retyped_stream)
    fuzz(cases(bodies), lambda case: survive(upstream, case), 300)


@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_wrong_types_in_a_body(upstream: str) -> None:
    bodies = wholes(upstream).flatmap(mutations.retyped_body)
    fuzz(cases(bodies), lambda case: survive(upstream, case), 200)
