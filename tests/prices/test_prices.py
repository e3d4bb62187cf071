"""The cost of an answer: from the config first, then from the table, else unknown."""

import pytest

from dragoman.config import ConfigError, loads
from dragoman.model.events import Usage
from dragoman.prices import Price, Prices, cost

NOW = 1_795_000_000.0
USAGE = Usage(input=1_000_000, cache_read=1_000_000, cache_write=1_000_000, output=1_000_000)


def cost_of(text: str, upstream: str, model: str, usage: Usage = USAGE) -> float | None:
    config = loads(text)
    return Prices(config.prices).cost(config.upstreams[upstream], model, usage, NOW)


def test_a_known_provider_has_its_list_prices() -> None:
    assert cost_of("[upstreams.anthropic]", "anthropic", "claude-opus-4-5") == pytest.approx(
        5 + 0.5 + 6.25 + 25
    )
    routed = cost_of("[upstreams.openrouter]", "openrouter", "anthropic/claude-opus-4.5")
    assert routed == pytest.approx(5 + 0.5 + 6.25 + 25)


@pytest.mark.parametrize(
    ("upstream", "model"),
    [
        ("[upstreams.anthropic]", "nobody-knows-this"),
        ("[upstreams.ollama]", "deepseek-chat"),  # runs on this machine, not at DeepSeek
        ("[upstreams.nvidia]", "deepseek-chat"),
        ('[upstreams.own]\nprotocol = "openai-chat"\nbase_url = "http://10.0.0.7:8000/v1"', "gpt-5-mini"),
    ],
)
def test_an_unknown_price_is_none_and_not_zero(upstream: str, model: str) -> None:
    assert cost_of(upstream, upstream.split(".")[1].split("]")[0], model) is None


def test_an_unknown_public_server_has_the_price_of_the_models_maker() -> None:
    text = '[upstreams.company]\nprotocol = "openai-chat"\nbase_url = "https://llm.example.com/v1"'
    assert cost_of(text, "company", "anthropic/claude-opus-4-5") == pytest.approx(5 + 0.5 + 6.25 + 25)


CONFIGURED = """
[upstreams.anthropic]
[upstreams.ollama]

[prices]
"anthropic/claude-opus-*" = { input = 1, output = 2, cache_read = 0.1, cache_write = 1.5 }
"*-free" = { input = 0, output = 0 }
"qwen*" = { input = 4, output = 8 }
"""


@pytest.mark.parametrize(
    ("upstream", "model", "dollars"),
    [
        ("anthropic", "claude-opus-4-5", 1 + 2 + 0.1 + 1.5),
        ("anthropic", "claude-haiku-4-5", 1 + 5 + 0.1 + 1.25),  # no glob matches: the list price
        ("ollama", "Qwen3", 4 + 8 + 4 + 4),  # without prices for the cache: as for other input
        ("ollama", "llama-free", 0.0),  # zero because somebody says so
        ("ollama", "claude-opus-4-5", None),
    ],
)
def test_the_config_comes_first(upstream: str, model: str, dollars: float | None) -> None:
    assert cost_of(CONFIGURED, upstream, model) == pytest.approx(dollars)


def test_the_cost_is_unknown_without_token_counts() -> None:
    assert cost(Usage(), Price(1.0, 1.0)) is None
    assert cost(Usage(input=5, output=1), Price(1.0)) is None
    assert cost(Usage(input=1_000_000), Price(1.0)) == 1.0


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('"m" = 3', "dragoman.toml:3: m in [prices] must be a table, not a number"),
        (
            '"m" = { input = 3 }',
            'dragoman.toml:3: m in [prices] needs "output", in US dollars per million tokens',
        ),
        (
            '"m" = { inptu = 3, output = 1 }',
            'dragoman.toml:3: m in [prices] has the unknown key "inptu"; did you mean "input"?',
        ),
        (
            '"m" = { input = -3, output = 1 }',
            "dragoman.toml:3: m in [prices] input must be a number of at least 0, not -3",
        ),
        (
            '"a|b" = { input = 3, output = 1 }',
            'dragoman.toml:3: [prices] is not a glob: in "a|b", "|" has no meaning; use "*" for any text, '
            '"?" for one character, and a list for alternatives',
        ),
    ],
)
def test_an_invalid_price_is_reported_with_its_line(line: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        loads(f"[upstreams.anthropic]\n[prices]\n{line}\n")
    assert str(raised.value) == sentence
