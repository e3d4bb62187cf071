"""The comparison with other gateways counts what it says it counts."""

import asyncio

import pytest

from bench import faults
from bench.subjects import DRAGOMAN, FLOOR_A, Subject
from dragoman.conform import corpus

CHAT = ("openai-chat", "openai-chat")
# A misnamed parameter, and split characters: only the second case is right without mending.
CASES = [case for case in corpus.cases() if case["id"] in ("alias-bash-prompt", "sse-utf8-split-every-char")]


@pytest.mark.parametrize(("subject", "right"), [(FLOOR_A, 1), (DRAGOMAN, 2)], ids=["nothing", "Dragoman"])
def test_only_correct_calls_are_counted(subject: Subject, right: int) -> None:
    tally = asyncio.run(faults.judged(subject, CHAT, CASES))
    assert (tally.right, tally.legal, tally.of) == (right, right, len(CASES))
