"""The metrics of `/metrics`, parsed by the Prometheus client."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.gateways import Gateway, before_a_chat_upstream
from support.plain_http import call, post

from dragoman.observe.metrics import OTHER, Metrics

MANUAL = Path(__file__).parents[2] / "docs" / "reference" / "http.md"
TOOL = {
    "name": "Bash",
    "description": "Run a shell command",
    "input_schema": {
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
}


@pytest.fixture
def running() -> Iterator[Gateway]:
    with before_a_chat_upstream() as served:
        yield served


def ask(served: Gateway, model: str) -> int:
    messages = [{"role": "user", "content": "Run the command ls -la"}]
    body = {"model": model, "max_tokens": 100, "messages": messages, "tools": [TOOL], "stream": True}
    return post(f"{served.url}/v1/messages", body).status


def samples(served: Gateway) -> dict[tuple[str, ...], float]:
    """Every sample by its name and the values of its labels."""
    got = call(f"{served.url}/metrics")
    assert got.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = text_string_to_metric_families(got.body.decode())
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def test_requests_calls_and_tokens_are_counted(running: Gateway) -> None:
    assert [ask(running, f"up/{model}") for model in ("demo", "demo-misnamed", "demo-500")] == [200, 200, 500]
    assert ask(running, "nowhere/x") == 200  # the default route accepts every name
    found = samples(running)
    assert found["dragoman_requests_total", "anthropic", "demo", "ok", "up"] == 1
    assert found["dragoman_requests_total", "anthropic", "demo-500", "server", "up"] == 1
    assert found["dragoman_failures_total", "server", "up"] == 1
    assert found["dragoman_request_seconds_count", "anthropic", "demo", "up"] == 1
    assert found["dragoman_first_event_seconds_count", "anthropic", "demo", "up"] == 1
    assert found["dragoman_tokens_total", "anthropic", "input", "demo", "up"] > 0
    assert found["dragoman_tokens_total", "anthropic", "output", "demo", "up"] > 0
    # Nobody has a price for these models, so their answers count as unpriced, not as free.
    assert found["dragoman_unpriced_answers_total", "anthropic", "demo", "up"] == 1
    assert found["dragoman_cost_usd_total", "anthropic", "demo", "up"] == 0
    assert found["dragoman_key_unpriced_answers_total", ""] == 3
    assert found["dragoman_key_tokens_total", "", "input"] > 0
    assert found[("dragoman_open_streams",)] == 0
    assert found["dragoman_tool_calls_total", "mended", "up"] == 1
    ask(running, "up/demo-invented")
    assert samples(running)["dragoman_tool_calls_total", "not_offered", "up"] == 1
    assert sum(value for name, value in found.items() if name[0] == "dragoman_rules_fired_total") == 1


def test_unknown_model_names_create_no_labels() -> None:
    metrics = Metrics()
    assert metrics.model("first") == "first"
    assert {metrics.model(f"invented-{number}") for number in range(1000)} >= {OTHER}
    assert metrics.model("another") == OTHER
    assert metrics.model("first") == "first"


def test_every_metric_is_in_the_manual() -> None:
    manual = MANUAL.read_text()
    families = text_string_to_metric_families(Metrics().page().decode())
    names = {f"{family.name}_total" if family.type == "counter" else family.name for family in families}
    assert names
    assert {name for name in names if f"`{name}`" not in manual} == set()
