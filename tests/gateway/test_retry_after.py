"""Retry delays that upstreams request, in every header and body format."""

import pytest
from multidict import CIMultiDict

from dragoman.protocols.common.failures import from_body
from dragoman.routing.retry_after import parse_retry_after, retry_delay

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("12", 12),
        (" 1.5 ", 1.5),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("soon", None),
        ("-1", None),
        ("inf", None),
        ("nan", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, 10.0) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After-Ms": "1500", "Retry-After": "2"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2),
        ({"Retry-After": "7", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1s"}, 7),
        ({"X-RateLimit-Remaining-Requests": "0", "X-RateLimit-Reset-Requests": "6m0s"}, 360),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "20ms"}, 0.02),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1h2m3.5s"}, 3723.5),
        # Groq's and others: plain seconds.
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "7.66"}, 7.66),
        # A timestamp, in seconds and in milliseconds.
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700000012"}, 12),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1700000012500"}, 12.5),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1600000000"}, 0),
        # Both limits reached: the longer.
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "3s",
            },
            3,
        ),
        # This limit was not reached.
        ({"x-ratelimit-remaining-requests": "12", "x-ratelimit-reset-requests": "6m0s"}, None),
        ({"x-ratelimit-reset-requests": "6m0s"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "Tue Feb 16"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": ""}, None),
        ({}, None),
    ],
)
def test_every_header_with_a_retry_delay(headers: dict[str, str], seconds: float | None) -> None:
    wait = retry_delay(CIMultiDict(headers), NOW)
    assert wait == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("details", "seconds"),
    [
        ('[{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}]', 34.07),
        ('[{"@type": "type.googleapis.com/google.rpc.QuotaFailure"}, {"retryDelay": "2s"}]', 2),
        ('[{"retryDelay": "later"}]', None),
        ('[{"retryDelay": 3}, null, "x"]', None),
        ('{"retryDelay": "3s"}', None),
        ("null", None),
    ],
)
def test_googles_retry_delay_is_in_the_body(details: str, seconds: float | None) -> None:
    body = '[{"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED", "details": %s}}]'
    failure = from_body(429, (body % details).encode())
    assert failure.status == 429
    assert failure.retry_after == seconds
