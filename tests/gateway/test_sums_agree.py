"""What an exchange used is the same number everywhere: receipt, usage, metrics, and the budget of its key."""

import json
import re
from collections.abc import Iterator

import pytest
from support.gateways import Gateway, Loop, gateway
from support.plain_http import Got, call, post
from support.scripted_upstream import ScriptedUpstream, body, in_background, status

from dragoman.access.meters import BudgetMeter

ADMIN, ANN = "admin-secret-1234", "ann-secret-123456"
BEGUN = {
    "type": "message_start",
    "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 300, "output_tokens": 1},
    },
}  # fmt: skip
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def frames(*events: dict[str, object]) -> bytes:
    return b"".join(
        b"event: %s\ndata: %s\n\n" % (str(e["type"]).encode(), json.dumps(e).encode()) for e in events
    )


def answer(prompt: int, output: int) -> bytes:
    message = {"role": "assistant", "content": "A plum."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    told = {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
    }
    return json.dumps(told).encode()


@pytest.fixture
def claude() -> Iterator[ScriptedUpstream]:
    with in_background() as served:
        yield served


@pytest.fixture
def chat() -> Iterator[ScriptedUpstream]:
    with in_background() as served:
        yield served


@pytest.fixture
def served(claude: ScriptedUpstream, chat: ScriptedUpstream) -> Iterator[Gateway]:
    loop = Loop()
    text = f"""
        [server]
        keys = ["{ADMIN}"]
        retries = 0
        [upstreams.claude]
        protocol = "anthropic"
        base_url = "{claude.url}"
        credential = "none"
        [upstreams.chat]
        protocol = "openai-chat"
        base_url = "{chat.url}"
        credential = "none"
        models = [{{ name = "blind", images = false }}, "eye", "m"]
        [images]
        describe_with = "chat/eye"
        [[routes]]
        match = "both"
        to = ["claude/m", "chat/m"]
        [keys.ann]
        secret = "{ANN}"
        budget = ["10k tokens/day", "500/month"]
        [prices]
        "*" = {{ input = 10_000, output = 20_000 }}  # a cent, and two cents, for each token
    """
    try:
        with gateway(text, loop) as running:
            yield running
    finally:
        loop.close()


def sums(served: Gateway, got: Got) -> dict[str, tuple[int, int, float]]:
    """Tokens and dollars of the only exchange of Ann, from everywhere. Budgets know no kinds of tokens."""
    id = got.headers["x-dragoman-exchange"]
    receipt = call(f"{served.url}/exchanges/{id}", x_api_key=ANN).json
    served.loop.run(served.state.observed.ledger.close())
    stored = call(f"{served.url}/exchanges/{id}", x_api_key=ANN).json
    [row] = call(f"{served.url}/usage?by=key", x_api_key=ANN).json["rows"]
    page = call(f"{served.url}/metrics", x_api_key=ADMIN).body.decode()

    def counted(name: str, labels: str) -> float:
        found = re.findall(rf"^dragoman_key_{name}_total{{key=\"ann\"{labels}}} (\S+)$", page, re.MULTILINE)
        return sum(map(float, found))

    tokens = int(counted("tokens", ',kind="input"')), int(counted("tokens", ',kind="output"'))
    return {
        "receipt": (receipt["usage"]["input"], receipt["usage"]["output"], receipt["cost"]),
        "stored": (stored["usage"]["input"], stored["usage"]["output"], stored["cost"]),
        "usage": (row["input"], row["output"], row["cost"]),
        "metrics": (*tokens, counted("cost_usd", "")),
    }


def budgets(served: Gateway) -> tuple[int, float]:
    """What the counters of Ann's budgets hold: tokens, and dollars."""
    state = served.state
    identity = next(each.identity for each in state.keys._configured.values() if each.identity.name == "ann")
    spent = [
        one.spent(state.clock(), 0) for one in state.limiter.meters(identity) if isinstance(one, BudgetMeter)
    ]
    tokens, micros = served.loop.run(state.limit_counters.add(spent))
    return tokens, micros / 1e6


def test_an_attempt_that_failed_after_it_had_used_tokens(
    served: Gateway, claude: ScriptedUpstream, chat: ScriptedUpstream
) -> None:
    claude.script(frames(BEGUN, OVERLOADED))
    chat.script(body(answer(60, 40)))
    asked = {"model": "both", "messages": [{"role": "user", "content": "What is it?"}], "max_tokens": 50}
    got = post(f"{served.url}/v1/chat/completions", asked, x_api_key=ANN)
    assert got.status == 200
    found = sums(served, got)
    tokens, dollars = budgets(served)
    used, written, cost = found["receipt"]
    assert (used, written) == (360, 41)
    assert cost == pytest.approx(360 * 0.01 + 41 * 0.02)
    assert set(found.values()) == {found["receipt"]}
    assert (tokens, dollars) == (used + written, pytest.approx(cost))


def test_an_image_that_another_model_described(served: Gateway, chat: ScriptedUpstream) -> None:
    chat.script(body(answer(700, 30)), body(answer(60, 40)))
    shown = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{IMAGE}"}}
    asked = {"model": "chat/blind", "messages": [{"role": "user", "content": [shown]}], "max_tokens": 50}
    got = post(f"{served.url}/v1/chat/completions", asked, x_api_key=ANN)
    # The client judges by the usage of the answer how full its context is.
    assert got.json["usage"]["prompt_tokens"] == 60
    found = sums(served, got)
    tokens, dollars = budgets(served)
    assert set(found.values()) == {found["receipt"]}
    assert found["receipt"] == (760, 70, pytest.approx(9.0))
    assert (tokens, dollars) == (830, pytest.approx(9.0))


def test_a_target_that_refuses_costs_nothing(
    served: Gateway, claude: ScriptedUpstream, chat: ScriptedUpstream
) -> None:
    claude.script(status(529))
    chat.script(body(answer(60, 40)))
    asked = {"model": "both", "messages": [{"role": "user", "content": "What is it?"}], "max_tokens": 50}
    got = post(f"{served.url}/v1/chat/completions", asked, x_api_key=ANN)
    assert {used[:2] for used in sums(served, got).values()} == {(60, 40)}
    assert budgets(served)[0] == 100
