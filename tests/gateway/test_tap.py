"""The tap: copies for subscribers, limits for slow ones, and redacted secrets."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config import loads
from dragoman.credentials.secret import Secret
from dragoman.model.events import Failed, FailureKind
from dragoman.observe.tap import (
    ClientBytes,
    ExchangeEnded,
    Redactor,
    ReplaySetup,
    Ring,
    Subscription,
    Tap,
    Track,
    UpstreamBytes,
    UpstreamRequest,
)
from dragoman.observe.tap.redaction import harmless_headers, harmless_path
from dragoman.protocols.common.tool_names import NameRule
from dragoman.recording.redact import RecordFilter
from dragoman.routing.router import route
from dragoman.translation.translation import Options

KEY = "sk-0123456789"
UPSTREAM = """
[upstreams.here]
protocol = "anthropic"
base_url = "http://127.0.0.1:1"
"""


def tap(ring: int = 1 << 20) -> Tap:
    return Tap(Ring(ring), clock=lambda: 1000.0)


def data(track: Track) -> list[bytes]:
    return [record.data for record in track.records if isinstance(record, UpstreamBytes | ClientBytes)]


def test_a_track_keeps_the_bytes_of_both_sides() -> None:
    track = tap().begin("x", "anthropic")
    track.record_upstream_bytes(b"one")
    track.record_client_bytes(b"two")
    track.record_client_bytes(b"three", alive=True)
    assert data(track) == [b"one", b"two", b"three"]
    assert (track.bytes_in, track.bytes_out) == (3, 8)
    times = [record.t for record in track.records]
    assert times == sorted(times)


def test_bytes_are_kept_without_a_copy() -> None:
    track = tap().begin("x", "anthropic")
    chunk = bytes(1000)
    track.record_upstream_bytes(chunk)
    assert data(track)[0] is chunk


def test_verbatim_bytes_are_kept_once_and_shown_on_both_sides() -> None:
    here = tap(ring=1_100_000)
    track = here.begin("x", "anthropic")
    for number in range(100):
        track.record_upstream_bytes(b"%05d" % number * 2000)
        track.record_client_bytes(b"%05d" % number * 2000)
        track.record_client_bytes(b": alive", alive=True)
    kept = data(track)
    assert len(kept) == 300
    assert all(kept[at] is kept[at + 1] for at in range(0, 300, 3))
    assert [getattr(record, "alive", None) for record in track.records] == [None, False, True] * 100
    assert "x" in here.ring, "a hundred receipts of ten kilobytes fit, two hundred do not"


def test_a_chunk_belongs_to_the_call_it_answers() -> None:
    here = tap()
    subscription = Subscription()
    here.subscribe(subscription)
    track = here.begin("x", "anthropic")
    track.attempt_started(route(loads(UPSTREAM), "here/m")[0])
    setup = ReplaySetup(NameRule("[a-z]+", 64), Options())
    for body in (b"once", b"again"):
        track.record_upstream_request("http://here/", {}, body, setup, again=False)
        track.record_upstream_bytes(body)
        track.record_upstream_status(200)
        track.record_upstream_bytes(body)
    assert [(record.call, record.data) for record in track.records if isinstance(record, UpstreamBytes)] == [
        (1, b"once"),
        (1, b"once"),
        (2, b"again"),
        (2, b"again"),
    ]
    assert [record.body for record in track.records if isinstance(record, UpstreamRequest)] == [
        b"once",
        b"again",
    ]
    assert track.records == [record for _, record in subscription.take()], (
        "who looks back sees what was heard"
    )


def test_a_subscriber_gets_bytes_and_milestones_in_order() -> None:
    here = tap(ring=0)
    woken: list[str] = []
    subscription = Subscription(wake=lambda track: woken.append(track.outcome))
    here.subscribe(subscription)
    track = here.begin("x", "anthropic")
    track.attempt_started(route(loads(UPSTREAM), "here/m")[0])
    track.record_upstream_bytes(b"one")
    track.record_client_bytes(b"two")
    track.first_content()
    failure = Failed(FailureKind.UPSTREAM, "broke")
    track.attempt_failed(failure)
    track.failed(failure)
    track.ended(502)
    heard = [type(record).__name__ for _, record in subscription.take()]
    assert heard == ["UpstreamBytes", "ClientBytes", "UpstreamFailure", "ExchangeEnded"]
    assert woken == ["running", "running", "running", "upstream"]
    assert list(subscription.take()) == []


def test_an_unsubscribed_listener_gets_nothing() -> None:
    here = tap()
    subscription = Subscription()
    here.subscribe(subscription)
    here.unsubscribe(subscription)
    here.begin("x", "anthropic").record_upstream_bytes(b"one")
    assert list(subscription.take()) == []
    assert here.subscriptions == here.record_subscriptions == ()


def test_only_a_slow_subscriber_loses_messages() -> None:
    here = tap()
    slow, quick = Subscription(max_bytes=10_000), Subscription()
    here.subscribe(slow)
    here.subscribe(quick)
    track = here.begin("x", "anthropic")
    for _ in range(100):
        track.record_upstream_bytes(bytes(1000))
    track.succeeded()
    track.ended(200)
    assert slow.dropped > 80
    assert len(list(slow.take())) == 101 - slow.dropped
    assert len(list(quick.take())) == 101
    assert track.dropped == slow.dropped
    again = here.begin("y", "anthropic")
    again.record_upstream_bytes(b"room again")
    assert len(list(slow.take())) == 1


def test_the_recording_of_a_slow_recorder_is_marked_incomplete() -> None:
    here = tap(ring=0)
    subscription = Subscription(max_bytes=3000)
    here.subscribe(subscription)
    track = here.begin("x", "anthropic")
    for _ in range(10):
        track.record_upstream_bytes(bytes(500))
    list(subscription.take())
    track.succeeded()
    track.ended(200)
    ((_, ended),) = subscription.take()
    assert isinstance(ended, ExchangeEnded)
    assert ended.dropped == track.dropped > 0


def test_the_ring_drops_the_oldest_first_and_running_exchanges_last() -> None:
    here = tap(ring=100_000)
    running = here.begin("running", "anthropic")
    running.record_upstream_bytes(bytes(20_000))
    for number in range(10):
        track = here.begin(str(number), "anthropic")
        track.record_upstream_bytes(bytes(20_000))
        track.succeeded()
        track.ended(200)
    assert "running" in here.ring
    assert [str(n) in here.ring for n in range(10)] == [False] * 7 + [True] * 3
    assert here.ring.size <= 100_000


def test_an_exchange_larger_than_the_ring_is_dropped_and_continues() -> None:
    here = tap(ring=50_000)
    track = here.begin("x", "anthropic")
    for _ in range(10):
        track.record_upstream_bytes(bytes(20_000))
    assert "x" not in here.ring
    assert (track.records, here.ring.size) == ([], 0)
    track.succeeded()
    track.ended(200)
    assert track.bytes_in == 200_000
    assert here.ring.size == 0


def test_a_small_chunk_counts_with_its_overhead() -> None:
    here = tap(ring=1_000_000)
    track = here.begin("x", "anthropic")
    for _ in range(20_000):
        track.record_upstream_bytes(b"x")
    track.succeeded()
    track.ended(200)
    assert "x" not in here.ring, "twenty thousand records are more than a megabyte"


def test_only_listed_headers_are_kept() -> None:
    shown = harmless_headers(
        {"User-Agent": "x/1", "X-Api-Key": KEY, "Cookie": "a=b", "x-my-token": KEY, "x-stainless-os": "Linux"}
    )
    assert shown == {
        "user-agent": "x/1",
        "x-api-key": "[removed]",
        "cookie": "[removed]",
        "x-my-token": "[removed]",
        "x-stainless-os": "Linux",
    }


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("/v1/messages", "/v1/messages"),
        ("/v1/messages?beta=true", "/v1/messages?beta=true"),
        (f"/v1beta/models/m:g?alt=sse&key={KEY}", "/v1beta/models/m:g?alt=sse&key=[removed]"),
        (f"/v1/messages?{KEY}&beta", "/v1/messages?[removed]=&beta="),
        (f"https://user:{KEY}@host:1/a?token={KEY}#x", "https://host:1/a?token=[removed]"),
    ],
)
def test_urls_are_kept_without_secrets(url: str, shown: str) -> None:
    assert harmless_path(url) == shown


@pytest.mark.parametrize(
    "secret", [KEY, 'with "quotes" and \\', "slashes/and+more=", "ключ-длинный", "\ud800-half-key"]
)
def test_a_secret_is_found_in_text_json_and_urls(secret: str) -> None:
    redactor = Redactor()
    redactor.learn([Secret(secret)])
    once = msgspec.json.encode(secret.encode("utf-8", "replace").decode()) if secret.isprintable() else b""
    for written in filter(None, (secret.encode("utf-8", "surrogatepass"), once.strip(b'"'))):
        shown = redactor.scrub(b"<" + written + b">")
        assert shown == b"<%s>" % Secret(secret).fingerprint.encode()


def test_a_short_secret_is_not_redacted() -> None:
    redactor = Redactor()
    redactor.learn([Secret("demo")])
    assert redactor.scrub(b"a demo of it") == b"a demo of it"


def test_a_secret_inside_another_is_redacted() -> None:
    redactor = Redactor()
    redactor.learn([Secret(KEY), Secret(KEY + "-and-more")])
    assert KEY.encode() not in redactor.scrub(f"<{KEY}-and-more>".encode())
    assert b"and-more" not in redactor.scrub(f"<{KEY}-and-more>".encode())


def test_old_learned_secrets_are_forgotten_but_given_ones_are_redacted() -> None:
    redactor = Redactor()
    first = Secret(KEY)
    redactor.learn([first])
    redactor.learn(Secret(f"another-key-{n}") for n in range(100))
    assert redactor.scrub(KEY.encode()) == KEY.encode()
    assert redactor.scrub(KEY.encode(), [first]) == first.fingerprint.encode()


def test_secrets_in_use_are_never_forgotten() -> None:
    redactor = Redactor()
    upstream = Secret(KEY)
    for n in range(300):
        redactor.learn([Secret(f"another-key-{n}")])
        redactor.learn([upstream])
        assert redactor.scrub(KEY.encode()) == upstream.fingerprint.encode()


TEXT = f"a key {KEY}, its beginning sk-01234 and {KEY}{KEY} at the end sk-0".encode()


@given(cuts=st.sets(st.integers(0, len(TEXT)), max_size=30), batches=st.integers(1, 5))
def test_redaction_is_the_same_for_every_chunking(cuts: set[int], batches: int) -> None:
    """The redacted text is written. Chunks keep their number, order and times."""
    redactor = Redactor()
    redactor.learn([Secret(KEY)])
    edges = [0, *sorted(cuts), len(TEXT)]
    chunks = [ClientBytes(float(n), TEXT[a:b]) for n, (a, b) in enumerate(pairwise(edges))]
    track = tap().begin("x", "anthropic")
    censor = RecordFilter(redactor, track)
    out: list[object] = []
    for at in range(0, len(chunks), batches):
        passed = censor.filter(chunks[at : at + batches])
        out += passed
        assert KEY.encode() not in b"".join(one.data for one in out if isinstance(one, ClientBytes))
    out += censor.flush()
    went = [one for one in out if isinstance(one, ClientBytes)]
    assert [one.t for one in went] == [one.t for one in chunks]
    assert b"".join(one.data for one in went) == redactor.scrub(TEXT)


@given(cuts=st.sets(st.integers(0, len(TEXT)), max_size=30))
def test_patterns_match_across_chunks(cuts: set[int]) -> None:
    redactor = Redactor([r"sk-\d+"])
    edges = [0, *sorted(cuts), len(TEXT)]
    chunks = [ClientBytes(float(n), TEXT[a:b]) for n, (a, b) in enumerate(pairwise(edges))]
    censor = RecordFilter(redactor, tap().begin("x", "anthropic"))
    out = [one for chunk in chunks for one in censor.filter([chunk])]
    went = [one for one in (*out, *censor.flush()) if isinstance(one, ClientBytes)]
    assert b"".join(one.data for one in went) == redactor.scrub(TEXT)
    assert b"sk-" not in redactor.scrub(TEXT)


@pytest.mark.parametrize("patterns", [(), ("^said.*",)])
def test_many_pieces_are_redacted_separately(patterns: tuple[str, ...]) -> None:
    redactor = Redactor(patterns)
    own = [Secret(KEY), Secret("an\nother-one")]
    pieces = [b"said %d" % n for n in range(100)]
    pieces[40] = b"a key: %s" % KEY.encode()
    pieces[41:43] = [b"begins with an", b"other-one"]
    alone = [redactor.scrub(piece, own) for piece in pieces]
    assert list(redactor.scrub_all(pieces, own)) == alone
    assert KEY.encode() not in b"".join(alone)
    assert alone[41:43] == pieces[41:43], "two pieces are not one"
    assert redactor.scrub_all([], own) == []
