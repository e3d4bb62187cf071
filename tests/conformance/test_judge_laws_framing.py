"""The framing laws of all protocols, and samples that keep every law."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sample_streams import ERRORS, SAMPLES
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES

from dragoman.conform import laws, neutral
from dragoman.conform.corpus import cases, upstream_chunks

ALL = [(protocol, kind) for protocol in PROTOCOLS for kind in SAMPLES[protocol]]


@pytest.mark.parametrize(("protocol", "kind"), ALL)
def test_the_samples_are_clean(protocol: str, kind: str) -> None:
    sample = SAMPLES[protocol][kind]
    assert laws.check(protocol, sample.stream, stream=True) == []
    if sample.whole is not None:
        assert laws.check(protocol, sample.whole, stream=False) == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_error_body_is_clean(protocol: str) -> None:
    assert laws.check(protocol, ERRORS[protocol].body, stream=False) == []


@pytest.mark.parametrize(("protocol", "kind"), ALL)
def test_a_cut_stream_is_never_clean(protocol: str, kind: str) -> None:
    stream = SAMPLES[protocol][kind].stream
    for end in range(0, len(stream), 11):
        assert laws.check(protocol, stream[:end], stream=True), end
    # The last line end is part of the blank line that closes the last event.
    assert laws.check(protocol, stream.rstrip(), stream=True)
    assert laws.check(protocol, stream.rstrip() + b"\n", stream=True)


SPOILED = {
    "a byte order mark": (lambda s: b"\xef\xbb\xbf" + s, "byte order mark"),
    "not UTF-8": (lambda s: s.replace(b"Hello", b"Hell\xff"), "not UTF-8"),
    "a raw separator": (lambda s: s.replace(b"Hello", "He\u2028llo".encode()), "raw U+2028"),
    "a raw next line": (lambda s: s.replace(b"Hello", "He\x85llo".encode()), "raw U+0085"),
    "no space": (lambda s: s.replace(b"data: ", b"data:"), "no space after data:"),
    "an id line": (lambda s: b"id: 1\n" + s, "neither data nor event"),
    "a retry line": (lambda s: b"retry: 100\n\n" + s, "neither data nor event"),
    "an upper case field": (lambda s: b"DATA: {}\n\n" + s, "neither data nor event"),
    "an event without data": (lambda s: b"event: ping\n\n" + s, "an event without data"),
    "empty data": (lambda s: b"data: \n\n" + s, "data:  is empty"),
    "broken JSON": (lambda s: s.replace(b"}", b"", 1), "not JSON"),
    "JSON that is no object": (lambda s: b"data: 3\n\n" + s, "not a JSON object"),
    "not a number": (lambda s: b'data: {"a":NaN}\n\n' + s, "not JSON"),
    "events run together": (lambda s: s.replace(b"\n\n", b"\n", 1), ""),
    "nothing at all": (lambda _: b"", "not closed"),
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", SPOILED)
def test_a_framing_fault_is_noticed(protocol: str, name: str) -> None:
    spoil, complaint = SPOILED[name]
    stream = SAMPLES[protocol]["text"].stream.replace(b"\r\n", b"\n")
    found = laws.check(protocol, spoil(stream), stream=True)
    assert any(complaint in str(broken) for broken in found), found


@pytest.mark.parametrize("protocol", [ANTHROPIC, CHAT, RESPONSES])
def test_a_comment_keeps_a_connection_alive(protocol: str) -> None:
    stream = b": keep-alive\n\n" + SAMPLES[protocol]["text"].stream
    assert laws.check(protocol, stream, stream=True) == []


def test_a_comment_breaks_a_law_of_gemini() -> None:
    stream = b": keep-alive\n\n" + SAMPLES[GEMINI]["text"].stream
    assert laws.check(GEMINI, stream, stream=True)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
def test_every_kind_of_line_end_is_accepted(protocol: str, end: bytes) -> None:
    sample = SAMPLES[protocol]["tool"]
    stream = sample.stream.replace(b"\r\n", b"\n").replace(b"\n", end)
    assert laws.check(protocol, stream, stream=True) == []
    assert neutral.reduce(protocol, stream, stream=True) == sample.expect


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("body", [b"", b"{", b"null", b"[]", b"3", b"{}", b"\xff", b'"x"'])
def test_an_invalid_body_is_noticed(protocol: str, body: bytes) -> None:
    assert laws.check(protocol, body, stream=False)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_judges_survive_any_bytes(protocol: str) -> None:
    for case in cases():
        judge(protocol, b"".join(upstream_chunks(case)))


@given(
    protocol=st.sampled_from(PROTOCOLS),
    other=st.sampled_from(ALL),
    start=st.integers(0, 4000),
    length=st.integers(0, 80),
    filling=st.sampled_from([b"", b"null", b"[]", b'"x"', b"\n\n", b"\xff"]),
)
def test_the_judges_survive_any_edit(
    protocol: str, other: tuple[str, str], start: int, length: int, filling: bytes
) -> None:
    stream = SAMPLES[other[0]][other[1]].stream
    judge(protocol, stream[:start] + filling + stream[start + length :])


def judge(protocol: str, body: bytes) -> None:
    """Both judges may report problems. Neither may raise."""
    for stream in (True, False):
        laws.check(protocol, body, stream=stream)
        try:
            neutral.reduce(protocol, body, stream=stream)
        except neutral.UnreadableError:
            continue
