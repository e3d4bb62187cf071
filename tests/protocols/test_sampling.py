"""Settings that a model refuses are left out of translated requests, with a warning."""

import json
from typing import Any

import pytest
from support.wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

from dragoman.model.messages import Message, Reasoning, Request, Settings, Text
from dragoman.protocols.base import Target
from dragoman.protocols.registry import client_protocol, protocol

TO_OPENAI = pytest.mark.parametrize("upstream", [CHAT, RESPONSES])


def written(upstream: str, model: str, settings: Settings) -> tuple[dict[str, Any], list[str]]:
    request = Request(model=model, messages=(Message("user", (Text("?"),)),), settings=settings)
    out = protocol(upstream).write_request(request, Target(model=model, chat_compatible=False))
    return json.loads(out.encoded()), [notice.rule for notice in out.notices]


@TO_OPENAI
@pytest.mark.parametrize("model", ["gpt-5", "gpt-5-mini", "o3", "openai/o4-mini", "codex-mini-latest"])
def test_a_reasoning_model_gets_no_sampling(upstream: str, model: str) -> None:
    sent, said = written(upstream, model, Settings(temperature=0.2, top_p=0.9))
    assert not sent.keys() & {"temperature", "top_p"}
    assert said == ["temperature-dropped", "top-p-dropped"]


@TO_OPENAI
@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-5-chat-latest", "my-model"])
def test_any_other_model_gets_it(upstream: str, model: str) -> None:
    sent, said = written(upstream, model, Settings(temperature=0.2, top_p=0.9))
    assert (sent["temperature"], sent["top_p"], said) == (0.2, 0.9, [])


@TO_OPENAI
def test_the_default_stays(upstream: str) -> None:
    sent, said = written(upstream, "gpt-5", Settings(temperature=1, top_p=1))
    assert (sent["temperature"], sent["top_p"], said) == (1, 1, [])


@TO_OPENAI
@pytest.mark.parametrize(("effort", "kept"), [(None, True), ("none", True), ("low", False)])
def test_newer_models_sample_while_they_do_not_reason(upstream: str, effort: Any, kept: bool) -> None:
    reasoning = None if effort is None else Reasoning(effort=effort)
    sent, _ = written(upstream, "gpt-5.2", Settings(temperature=0.2, reasoning=reasoning))
    assert ("temperature" in sent) is kept


@TO_OPENAI
@pytest.mark.parametrize(("model", "kept"), [("gpt-4.1", False), ("o3", False), ("gpt-5", True)])
def test_verbosity(upstream: str, model: str, kept: bool) -> None:
    sent, said = written(upstream, model, Settings(verbosity="low"))
    assert ("verbosity" in json.dumps(sent)) is kept
    assert said == ([] if kept else ["verbosity-dropped"])


@TO_OPENAI
def test_log_probabilities_are_left_out_whole(upstream: str) -> None:
    sent, said = written(upstream, "gpt-5", Settings(logprobs=3))
    assert "logprobs" not in json.dumps(sent)
    assert said == ["logprobs-dropped"]


@pytest.mark.parametrize(
    ("client", "body"),
    [
        (CHAT, {"messages": [{"role": "user", "content": "?"}], "temperature": 0.2, "verbosity": "low"}),
        (RESPONSES, {"input": "?", "temperature": 0.2, "text": {"verbosity": "low"}}),
    ],
)
def test_a_client_of_the_same_protocol_is_taken_at_its_word(client: str, body: dict[str, Any]) -> None:
    for model in ("gpt-5", "gpt-4.1"):
        request = client_protocol(client).read_request(json.dumps({"model": model, **body}).encode(), "")
        out = protocol(client).write_request(request, Target(model=model, chat_compatible=False))
        sent = json.loads(out.encoded())
        assert {name: sent[name] for name in body} == body


@pytest.mark.parametrize("upstream", [ANTHROPIC, GEMINI])
def test_other_upstreams_are_not_concerned(upstream: str) -> None:
    sent, said = written(upstream, "m", Settings(temperature=0.2, max_tokens=9))
    assert "0.2" in json.dumps(sent)
    assert said == []
