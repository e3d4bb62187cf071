"""Every client protocol, every upstream protocol and every kind of answer, streamed and whole.

A registered protocol joins by itself. `support.sample_streams` must hold its samples.
"""

import pytest
from support import agree, oracle
from support.exchanges import exchange, run, sliced
from support.sample_streams import CUSTOM_TOOL, ERRORS, KINDS, SAMPLES, TOOLS

from dragoman.conform import laws, neutral
from dragoman.protocols.registry import CLIENTS, PROTOCOLS

OFFERED = [*TOOLS, {"name": CUSTOM_TOOL, "kind": "custom"}]
SAYABLE = [(upstream, kind) for upstream in PROTOCOLS for kind in KINDS if kind in SAMPLES[upstream]]
PAIRS = [(upstream, client) for upstream in PROTOCOLS for client in CLIENTS]


def answers(upstream: str, kind: str) -> list[bytes]:
    """The answer as a stream and, if the protocol allows it, as one body."""
    sample = SAMPLES[upstream][kind]
    return [body for body in (sample.stream, sample.whole) if body is not None]


def test_every_registered_protocol_has_samples() -> None:
    assert set(SAMPLES) == set(PROTOCOLS) == set(ERRORS)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(("upstream", "kind"), SAYABLE)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_the_client_gets_the_answer_of_the_upstream(
    upstream: str, client: str, kind: str, stream: bool
) -> None:
    expect = SAMPLES[upstream][kind].expect
    for body in answers(upstream, kind):
        for size in (len(body), 7, 1):
            it = exchange(upstream, client, OFFERED, stream=stream)
            got = run(it, sliced(body, size))
            assert laws.check(client, got, stream=stream) == []
            heard = [neutral.reduce(client, got, stream=stream)]
            if size == len(body) and client in oracle.JUDGED:
                status = it.failure.status if it.failure and not stream else 200
                helper = kind != "custom_tool"  # the SDK's Chat helper crashes on freeform calls
                heard.append(oracle.parse(client, got, stream=stream, status=status, helper=helper))
            for said in heard:
                if it.failure is not None and not stream:
                    assert said["stop"] == "error"
                    assert expect["error"]["message"] in said["error"]["message"]
                else:
                    assert agree.differences(expect, said, client=client) == []


@pytest.mark.parametrize(("upstream", "client"), PAIRS, ids="-to-".join)
def test_an_error_before_the_first_byte_keeps_its_status(upstream: str, client: str) -> None:
    error = ERRORS[upstream]
    it = exchange(upstream, client)
    body = it.refuse(error.status, error.body)
    assert it.over
    assert it.failure is not None
    assert it.failure.status == error.status
    assert laws.check(client, body, stream=False) == []
    assert client not in oracle.JUDGED or oracle.raises_error(client, body, stream=False, status=error.status)
    said = neutral.reduce(client, body, stream=False)
    assert error.expect["error"]["message"] in said["error"]["message"]


@pytest.mark.parametrize(("upstream", "client"), PAIRS, ids="-to-".join)
def test_a_cut_stream_never_ends_as_a_success(upstream: str, client: str) -> None:
    body = SAMPLES[upstream]["tool"].stream
    whole = neutral.reduce(client, run(exchange(upstream, client, OFFERED), [body]), stream=True)
    for cut in range(0, len(body) - 1, 23):
        it = exchange(upstream, client, OFFERED)
        got = run(it, [body[:cut]])
        said = neutral.reduce(client, got, stream=True)
        assert laws.check(client, got, stream=True) == []
        if said["stop"] != "error":
            # Only the end marker of a complete answer was cut off.
            assert said["stop"] == "tool_use"
            assert said["tool_calls"] == whole["tool_calls"]
