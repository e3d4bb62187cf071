"""The comparison with other gateways counts what it says it counts."""

import asyncio

import pytest

from bench import faults
from bench.subjects import DRAGOMAN, FLOOR_A, Subject
from dragoman.conform import corpus

CHAT = ("openai-chat", "openai-chat")
# A misnamed parameter, and characters that are cut between chunks: only the second is right as it is.
CASES = [case for case in corpus.cases() if case["id"] in ("alias-bash-prompt", "sse-utf8-split-every-char")]


@pytest.mark.parametrize(("subject", "right"), [(FLOOR_A, 1), (DRAGOMAN, 2)], ids=["nothing", "Dragoman"])
def test_only_what_arrives_right_is_counted(subject: Subject, right: int) -> None:
    tally = asyncio.run(faults.judged(subject, CHAT, CASES))
    assert (tally.right, tally.legal, tally.of) == (right, right, len(CASES))
