"""Settings that a model refuses are left out of translated requests, with a warning."""

import json
from typing import Any

import pytest
from support.anew import anew
from support.wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

from dragoman.model.messages import Message, Reasoning, Request, Settings, Text
from dragoman.protocols.base import Outgoing, Target
from dragoman.protocols.registry import client_protocol, protocol, upstream_protocol

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
def test_a_default_is_left_out_without_a_word(upstream: str) -> None:
    sent, said = written(upstream, "gpt-5", Settings(temperature=1, top_p=1))
    assert not sent.keys() & {"temperature", "top_p"}
    assert said == []


@TO_OPENAI
@pytest.mark.parametrize(("effort", "kept"), [(None, True), ("none", True), ("low", False)])
def test_newer_models_sample_while_they_do_not_reason(upstream: str, effort: Any, kept: bool) -> None:
    reasoning = None if effort is None else Reasoning(effort=effort)
    sent, _ = written(upstream, "gpt-5.2", Settings(temperature=0.2, reasoning=reasoning))
    assert ("temperature" in sent) is kept


@TO_OPENAI
@pytest.mark.parametrize(("model", "kept"), [("gpt-5.2", True), ("gpt-5.5", False), ("gpt-5.1-codex", False)])
def test_newer_models_differ_in_what_they_do_unasked(upstream: str, model: str, kept: bool) -> None:
    assert ("temperature" in written(upstream, model, Settings(temperature=0.2))[0]) is kept


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


OWN = pytest.mark.parametrize(
    ("client", "body"),
    [
        (CHAT, {"messages": [{"role": "user", "content": "?"}], "temperature": 0.2, "verbosity": "low"}),
        (RESPONSES, {"input": "?", "temperature": 0.2, "text": {"verbosity": "low"}}),
    ],
)


def passed_on(client: str, model: str, body: dict[str, Any], *, rebuilt: bool = False) -> Outgoing:
    """What an upstream of the client's own protocol gets."""
    path = f"/v1beta/models/{model}:generateContent"
    request = client_protocol(client).read_request(json.dumps({"model": model, **body}).encode(), path)
    target = Target(model=model, chat_compatible=False, anthropic_version="2023-06-01")
    return protocol(client).write_request(anew(request) if rebuilt else request, target)


@OWN
def test_an_unknown_model_gets_all_settings_of_its_own_protocol(client: str, body: dict[str, Any]) -> None:
    sent = passed_on(client, "my-model", body).body
    assert {name: sent[name] for name in body} == body


@OWN
@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_route_to_another_model_drops_what_that_refuses(
    client: str, body: dict[str, Any], rebuilt: bool
) -> None:
    out = passed_on(client, "gpt-5", body, rebuilt=rebuilt)
    assert "0.2" not in json.dumps(out.body)
    assert [notice.rule for notice in out.notices] == ["temperature-dropped"]
    out = passed_on(client, "gpt-4.1", body, rebuilt=rebuilt)
    assert "0.2" in json.dumps(out.body)
    assert "low" not in json.dumps(out.body)
    assert [notice.rule for notice in out.notices] == ["verbosity-dropped"]


def test_own_log_probabilities_are_left_out_whole() -> None:
    body = {"messages": [{"role": "user", "content": "?"}], "logprobs": True, "top_logprobs": 2}
    assert "logprobs" not in json.dumps(passed_on(CHAT, "gpt-5", body).body)
    included = ["message.output_text.logprobs", "reasoning.encrypted_content"]
    body = {"input": "?", "top_logprobs": 2, "include": included}
    assert passed_on(RESPONSES, "gpt-5", body).body == {
        "model": "gpt-5",
        "input": "?",
        "include": included[1:],
    }


def test_claude_takes_no_sampling_from_opus_4_7_on() -> None:
    sent, said = written(ANTHROPIC, "claude-opus-4-8", Settings(temperature=0.2, top_p=0.9, max_tokens=9))
    assert not sent.keys() & {"temperature", "top_p"}
    assert said == ["temperature-dropped", "top-p-dropped"]
    sent, said = written(ANTHROPIC, "claude-sonnet-4-5", Settings(temperature=0.2, max_tokens=9))
    assert (sent["temperature"], said) == (0.2, [])


HELLO = {"max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}


@pytest.mark.parametrize("rebuilt", [False, True])
def test_an_anthropic_client_is_routed_to_such_a_model(rebuilt: bool) -> None:
    out = passed_on(ANTHROPIC, "claude-opus-4-8", {**HELLO, "temperature": 0.2, "top_k": 3}, rebuilt=rebuilt)
    assert not out.body.keys() & {"temperature", "top_k"}
    assert [notice.rule for notice in out.notices] == ["temperature-dropped", "top-k-dropped"]


def test_converse_leaves_it_out_for_the_same_models() -> None:
    request = Request(
        model="m", messages=(Message("user", (Text("?"),)),), settings=Settings(temperature=0.2, max_tokens=9)
    )
    target = Target(model="anthropic.claude-opus-4-8-v1:0")
    out = upstream_protocol("bedrock-converse").write_request(request, target)
    assert out.body["inferenceConfig"] == {"maxTokens": 9}
    assert [notice.rule for notice in out.notices] == ["temperature-dropped"]


@pytest.mark.parametrize("upstream", [ANTHROPIC, GEMINI])
def test_other_upstreams_are_not_concerned(upstream: str) -> None:
    sent, said = written(upstream, "m", Settings(temperature=0.2, max_tokens=9))
    assert "0.2" in json.dumps(sent)
    assert said == []


# ---------------------------------------------------------------- reasoning efforts


@TO_OPENAI
@pytest.mark.parametrize(
    ("model", "wanted", "given", "rule"),
    [
        ("gpt-5", "none", "minimal", "effort-raised"),
        ("gpt-5", "max", "high", "effort-lowered"),
        ("gpt-5.1", "minimal", "low", "effort-raised"),
        ("gpt-5.1", "none", "none", None),
        ("gpt-5.2", "max", "xhigh", "effort-lowered"),
        ("gpt-5.1-codex", "none", "low", "effort-raised"),
        ("gpt-5-pro", "low", "high", "effort-raised"),
        ("o3", "xhigh", "high", "effort-lowered"),
        ("my-model", "xhigh", "xhigh", None),
    ],
)
def test_a_model_gets_the_nearest_effort_it_accepts(
    upstream: str, model: str, wanted: Any, given: str, rule: str | None
) -> None:
    sent, said = written(upstream, model, Settings(reasoning=Reasoning(effort=wanted)))
    assert (sent.get("reasoning_effort") or sent["reasoning"]["effort"], said) == (
        given,
        [rule] if rule else [],
    )
    bodies = {
        CHAT: {"messages": HELLO["messages"], "reasoning_effort": wanted},
        RESPONSES: {"input": "?", "reasoning": {"effort": wanted, "summary": "auto"}},
    }
    for rebuilt in (False, True):
        own = passed_on(upstream, model, bodies[upstream], rebuilt=rebuilt).body
        assert (own.get("reasoning_effort") or own["reasoning"]["effort"]) == given


def test_thinking_switched_off_reaches_a_model_that_always_reasons() -> None:
    sent, said = written(RESPONSES, "o3", Settings(reasoning=Reasoning(enabled=False)))
    assert (sent["reasoning"], said) == ({"effort": "low"}, ["effort-raised"])


ADAPTIVE = {"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 4000}}


@pytest.mark.parametrize("rebuilt", [False, True])
@pytest.mark.parametrize(
    ("model", "given", "expected"),
    [
        ("claude-opus-4-8", ADAPTIVE, ADAPTIVE),
        ("claude-opus-4-6", ADAPTIVE, {**ADAPTIVE, "output_config": {"effort": "high"}}),
        ("claude-haiku-4-5", ADAPTIVE, {"thinking": {"type": "enabled", "budget_tokens": 4500}}),
        ("claude-3-5-haiku-latest", ADAPTIVE, {}),
        ("claude-haiku-4-5", {"output_config": {"effort": "low"}}, {}),
        ("claude-opus-4-5", {"output_config": {"effort": "low"}}, {"output_config": {"effort": "low"}}),
        ("claude-opus-4-8", BUDGET, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
        ("claude-sonnet-4-5", BUDGET, BUDGET),
        ("claude-3-5-haiku-latest", BUDGET, {}),
        ("claude-fable-5", {"thinking": {"type": "disabled"}}, {}),
        ("claude-opus-4-8", {"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
        ("my-model", {**ADAPTIVE, "output_config": {"effort": "xhigh", "x": 1}}, None),
    ],
)
def test_an_anthropic_client_thinks_as_the_routes_model_can(
    model: str, given: dict[str, Any], expected: dict[str, Any] | None, rebuilt: bool
) -> None:
    sent = passed_on(ANTHROPIC, model, {**HELLO, "max_tokens": 9000, **given}, rebuilt=rebuilt).body
    kept = {name: sent[name] for name in ("thinking", "output_config") if name in sent}
    assert kept == (given if expected is None else expected)


@pytest.mark.parametrize("rebuilt", [False, True])
@pytest.mark.parametrize(
    ("model", "given", "expected"),
    [
        ("gemini-3-pro", {"thinkingLevel": "HIGH"}, {"thinkingLevel": "HIGH"}),
        ("gemini-3-pro", {"thinkingLevel": "MINIMAL"}, {"thinkingLevel": "LOW"}),
        ("gemini-2.5-flash", {"thinkingLevel": "LOW"}, {"thinkingBudget": 4096}),
        ("gemini-2.5-pro", {"thinkingBudget": 0}, {"thinkingBudget": 128}),
        ("gemini-2.5-flash", {"thinkingBudget": 50_000}, {"thinkingBudget": 24_576}),
        ("gemini-2.5-pro", {"thinkingBudget": -1}, {"thinkingBudget": -1}),
        ("gemini-2.0-flash", {"thinkingBudget": 100}, None),
    ],
)
def test_a_gemini_client_thinks_as_the_routes_model_can(
    model: str, given: dict[str, Any], expected: dict[str, Any] | None, rebuilt: bool
) -> None:
    body = {
        "contents": [{"parts": [{"text": "?"}]}],
        "generationConfig": {"thinkingConfig": given, "seed": 1},
    }
    config = passed_on(GEMINI, model, body, rebuilt=rebuilt).body["generationConfig"]
    assert config == {"seed": 1} | ({"thinkingConfig": expected} if expected else {})


# ---------------------------------------------------------------- stop sequences and limits


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5.4", "o3"])
def test_chat_models_without_stop_sequences_do_not_get_them(model: str) -> None:
    request = Request(
        model="m", messages=(Message("user", (Text("?"),)),), settings=Settings(stop=("END", "X"))
    )
    out = protocol(CHAT).write_request(request, Target(model=model))
    assert ("stop" in out.body, out.stop) == (False, ("END", "X"))
    assert [(notice.rule, notice.warning) for notice in out.notices] == [("stop-emulated", False)]
    for rebuilt in (False, True):
        own = passed_on(CHAT, model, {"messages": HELLO["messages"], "stop": ["END", "X"]}, rebuilt=rebuilt)
        assert ("stop" in own.body, own.stop) == (False, ("END", "X"))


@pytest.mark.parametrize("model", ["gpt-4.1", "gpt-5.5", "gpt-5-chat-latest", "my-model"])
def test_other_chat_models_get_them(model: str) -> None:
    own = passed_on(CHAT, model, {"messages": HELLO["messages"], "stop": "END"})
    assert (own.body["stop"], own.stop) == ("END", ())


@pytest.mark.parametrize(
    ("model", "field"),
    [("gpt-5", "max_completion_tokens"), ("o3", "max_completion_tokens"), ("x", "max_tokens")],
)
def test_the_old_name_of_the_limit_is_replaced_for_models_that_refuse_it(model: str, field: str) -> None:
    request = Request(model="m", messages=(Message("user", (Text("?"),)),), settings=Settings(max_tokens=50))
    own = passed_on(CHAT, model, {"messages": HELLO["messages"], "max_tokens": 50})
    translated = protocol(CHAT).write_request(request, Target(model=model, max_tokens_field="max_tokens"))
    for sent in (own.body, translated.body):
        assert {name: value for name, value in sent.items() if name.startswith("max")} == {field: 50}
