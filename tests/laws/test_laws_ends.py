"""Laws 26, 27, 28 and 48: only a complete answer ends as a success; failures are errors for every client."""

import json

import pytest
from support import oracle
from support.exchanges import exchange, run
from support.sample_streams import CUSTOM_TOOL, ERRORS, SAMPLES, TOOLS

from dragoman.conform import laws, neutral
from dragoman.model.events import End, Failed, FailureKind, Start, Stop
from dragoman.protocols.base import AnswerContext
from dragoman.protocols.common import failures
from dragoman.protocols.registry import CLIENTS, PROTOCOLS

ALL = list(PROTOCOLS)
PAIRS = [pytest.param(a, b, id=f"{a}-to-{b}") for a in ALL for b in CLIENTS]
OFFERED = [*TOOLS, {"name": CUSTOM_TOOL, "kind": "custom"}]
# Every byte for one client of each upstream, every eleventh for the others.
NEXT = dict(zip(ALL, ALL[1:] + ALL[:1], strict=True))
NOTHING = [
    b"",
    b"\n\n",
    b": hello\n\n",
    b"data: [DONE]\n\n",
    b"<html>502</html>",
    b"{",
    b"[]",
    b"{}",
    b"null",
]
MINTED = AnswerContext(id="u1", created=1, model="m")


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
@pytest.mark.parametrize("kind", ["text", "text_tool"])
def test_27_a_stream_cut_at_any_byte_succeeds_only_if_complete(upstream: str, client: str, kind: str) -> None:
    body = SAMPLES[upstream][kind].stream
    whole = neutral.reduce(client, run(exchange(upstream, client, OFFERED), [body]), stream=True)
    for cut in range(0, len(body), 1 if client == NEXT[upstream] else 11):
        it = exchange(upstream, client, OFFERED)
        got = run(it, [body[:cut]])
        assert laws.check(client, got, stream=True) == []
        said = neutral.reduce(client, got, stream=True)
        if it.failure is None:
            assert (said["text"], said["tool_calls"]) == (whole["text"], whole["tool_calls"])
            assert said["stop"] == whole["stop"]
        else:
            assert said["stop"] == "error"
            assert whole["text"].startswith(said["text"])


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
@pytest.mark.parametrize("asked", [True, False], ids=["stream", "whole"])
def test_27_an_empty_answer_is_an_error(upstream: str, client: str, asked: bool) -> None:
    for body in NOTHING:
        it = exchange(upstream, client, stream=asked)
        got = run(it, [body])
        assert it.failure is not None, body
        assert laws.check(client, got, stream=asked) == []
        assert neutral.reduce(client, got, stream=asked)["stop"] == "error"


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_26_an_error_after_the_first_byte_is_in_band(upstream: str, client: str) -> None:
    sample = SAMPLES[upstream]["error"]
    it = exchange(upstream, client, OFFERED)
    got = run(it, [sample.stream])
    assert it.started
    assert it.failure is not None
    assert laws.check(client, got, stream=True) == []
    said = neutral.reduce(client, got, stream=True)
    assert (said["text"], said["stop"]) == (sample.expect["text"], "error")
    assert client not in oracle.JUDGED or oracle.raises_error(client, got, stream=True)


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
@pytest.mark.parametrize("asked", [True, False], ids=["stream", "whole"])
def test_26_an_error_instead_of_an_answer_with_status_200(upstream: str, client: str, asked: bool) -> None:
    it = exchange(upstream, client, stream=asked)
    got = run(it, [ERRORS[upstream].body])
    assert it.failure is not None
    assert it.failure.kind is FailureKind.RATE_LIMIT
    assert laws.check(client, got, stream=asked) == []
    said = neutral.reduce(client, got, stream=asked)
    assert ERRORS[upstream].expect["error"]["message"] in said["error"]["message"]
    assert json.loads(it.error_body())


# If a protocol has one name for two kinds, the status distinguishes them.
WORDLESS = {
    ("anthropic", FailureKind.UPSTREAM),
    ("gemini", FailureKind.BILLING),
    ("gemini", FailureKind.TOO_LARGE),
    ("gemini", FailureKind.UPSTREAM),
    ("openai-chat", FailureKind.BILLING),
    ("cursor", FailureKind.BILLING),
    ("openai-responses", FailureKind.BILLING),
}


@pytest.mark.parametrize("kind", FailureKind)
@pytest.mark.parametrize("client", CLIENTS)
def test_28_every_kind_of_failure_keeps_its_meaning(client: str, kind: FailureKind) -> None:
    status = failures.STATUS[kind]
    assert failures.by_status(status) is kind
    body = CLIENTS[client].error_body(Failed(kind, "what went wrong", status), "r1")
    assert laws.check(client, body, stream=False) == []
    back = failures.from_body(status, body)
    assert (back.message, back.status) == ("what went wrong", status)
    assert back.kind is kind or (client, kind) in WORDLESS
    assert client not in oracle.JUDGED or oracle.raises_error(client, body, stream=False, status=status)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("upstream", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("asked", [True, False], ids=["stream", "whole"])
def test_48_a_refusal_is_never_plain_success(upstream: str, client: str, asked: bool) -> None:
    got = run(exchange(upstream, client, stream=asked), [SAMPLES[upstream]["refusal"].stream])
    said = neutral.reduce(client, got, stream=asked)
    assert said["stop"] in ("refusal", "content_filter")
    assert said["text"] + said["refusal"] == "I can't help with that."


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("upstream", ALL)
def test_48_a_refusal_without_text_is_reported_too(upstream: str, client: str) -> None:
    body = PROTOCOLS[upstream].stream_encoder(MINTED).encode([Start(model="m"), End(Stop.REFUSAL)])
    got = run(exchange(upstream, client), [body])
    assert laws.check(client, got, stream=True) == []
    assert neutral.reduce(client, got, stream=True)["stop"] in ("refusal", "content_filter")
