"""The corpus: recorded answers of broken upstreams, and what the client must get for each.

A case is the JSON of one file in `cases`. The fields that matter to a test:

upstream_protocol, request_tools      the protocol of the upstream, and the client's tools
upstream_sse | upstream_chunks_b64 | upstream_json      the answer; see `upstream_chunks`
expect                                the expected result in neutral form; see `compare`
debatable                             a good gateway may decide otherwise: a breach is only noted
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
    """The cases of the given themes, or all cases."""
    return [case for case in _all_cases() if not chosen or case["theme"] in chosen]


def themes() -> dict[str, int]:
    """The number of cases per theme."""
    return dict(Counter(case["theme"] for case in _all_cases()))


def upstream_chunks(case: Json) -> list[bytes]:
    """The upstream's answer in its original chunks; one chunk if the split does not matter."""
    if "upstream_chunks_b64" in case:
        return [base64.b64decode(chunk) for chunk in case["upstream_chunks_b64"]]
    if "upstream_json" in case:
        return [compact(case["upstream_json"]).encode()]
    return [case["upstream_sse"].encode()]


def content_type(case: Json) -> str:
    fallback = "application/json" if "upstream_json" in case else "text/event-stream"
    return case.get("upstream_content_type", fallback)
