"""The corpus of streams that break real gateways, for every client protocol and every chunking."""

from typing import Any

import pytest
from support import oracle
from support.exchanges import exchange, run, sliced

from dragoman.conform import corpus, laws, neutral
from dragoman.protocols.registry import PROTOCOLS

CASES = {case["id"]: case for case in corpus.cases()}

# Off by default: text before a lone `</think>` is reasoning only if all text is held back until the tag,
# which would stop live streaming. These cases switch the rule on.
OPTIONS: dict[str, dict[str, Any]] = {"think-no-open": {"unopened_thinking": True}}


def deliveries(case: dict[str, Any]) -> list[list[bytes]]:
    """The bytes as recorded, in one piece, and byte by byte (the few long ones in small pieces)."""
    chunks = corpus.upstream_chunks(case)
    body = b"".join(chunks)
    return [chunks, [body], sliced(body, 1 if len(body) < 50_000 else 61)]


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("id", CASES)
def test_case_as_a_stream(id: str, client: str) -> None:
    case = CASES[id]
    for mode in ("live", "whole"):
        for number, chunks in enumerate(deliveries(case)):
            it = exchange(
                case["upstream_protocol"], client, case["request_tools"], mode=mode, **OPTIONS.get(id, {})
            )
            got = run(it, chunks)
            said = neutral.reduce(client, got, stream=True)
            assert corpus.compare(case, said, client=client) == []
            assert laws.check(client, got, stream=True) == []
            if number == 0:
                heard = oracle.parse(client, got, stream=True)
                assert heard["stop"] == said["stop"]
                if said["stop"] != "error":
                    assert corpus.compare(case, heard, client=client) == []


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("id", CASES)
def test_case_as_one_body(id: str, client: str) -> None:
    case = CASES[id]
    it = exchange(case["upstream_protocol"], client, case["request_tools"], stream=False)
    got = run(it, corpus.upstream_chunks(case))
    said = neutral.reduce(client, got, stream=False)
    assert laws.check(client, got, stream=False) == []
    if it.failure is None:
        assert corpus.compare(case, said, client=client) == []
        assert corpus.compare(case, oracle.parse(client, got, stream=False), client=client) == []
    else:
        assert "error" in (case["expect"].get("stop_any") or [case["expect"]["stop"]])
        assert oracle.raises_error(client, got, stream=False, status=it.failure.status)
        wanted = case["expect"].get("error", {}).get("message_contains", "")
        assert wanted.lower() in said["error"]["message"].lower()
