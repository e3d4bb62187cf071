"""Law 4: the official SDKs read every generated answer as our judges do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import agree, fuzzing, oracle
from support.answers import TOOLS, GeneratedAnswer, spoken, stream
from support.exchanges import exchange, run

from dragoman.conform import neutral
from dragoman.protocols.registry import PROTOCOLS

ALL = list(PROTOCOLS)


@pytest.mark.parametrize("client", ALL)
@fuzzing.steady(12)
@given(answer=spoken("text thinking call"), upstream=st.sampled_from(ALL), asked=st.booleans())
def test_4_the_sdk_and_the_judge_read_the_same(
    client: str, upstream: str, answer: GeneratedAnswer, asked: bool
) -> None:
    got = run(exchange(upstream, client, TOOLS, stream=asked), [stream(answer, upstream)])
    ours = neutral.reduce(client, got, stream=asked)
    theirs = oracle.parse(client, got, stream=asked)
    assert agree.differences(ours, theirs, client=client) == []
    assert theirs["opaque"] == ours["opaque"]
