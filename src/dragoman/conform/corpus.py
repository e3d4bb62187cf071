"""The recorded failures: what a broken upstream sent, and what must reach the client all the same.

A case is the JSON of one file in `cases`. The fields that matter to a test:

upstream_protocol, request_tools      who answered, and the tools the client had declared
upstream_sse | upstream_chunks_b64 | upstream_json      the answer; see `upstream_chunks`
expect                                what comes out, in neutral form; see `compare`
debatable                             reasonable people differ: a named rule decides
"""

import base64
import json
from collections import Counter
from functools import cache
from pathlib import Path

from .compare import compare
from .shape import Json, compact

__all__ = [
    "cases",
    "compare",
    "content_type",
    "themes",
    "upstream_chunks",
]

CASES = Path(__file__).parent / "cases"


@cache
def _all_cases() -> tuple[Json, ...]:
    return tuple(json.loads(path.read_bytes()) for path in sorted(CASES.glob("*.json")))


def cases(*chosen: str) -> list[Json]:
    """The cases of the chosen themes, or all of them."""
    return [case for case in _all_cases() if not chosen or case["theme"] in chosen]


def themes() -> dict[str, int]:
    """How many cases each theme has."""
    return dict(Counter(case["theme"] for case in _all_cases()))


def upstream_chunks(case: Json) -> list[bytes]:
    """The answer as it came in; one chunk where the split does not matter."""
    if "upstream_chunks_b64" in case:
        return [base64.b64decode(chunk) for chunk in case["upstream_chunks_b64"]]
    if "upstream_json" in case:
        return [compact(case["upstream_json"]).encode()]
    return [case["upstream_sse"].encode()]


def content_type(case: Json) -> str:
    fallback = "application/json" if "upstream_json" in case else "text/event-stream"
    return case.get("upstream_content_type", fallback)
