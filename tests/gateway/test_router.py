"""Routing: the targets of a model name and their order."""

from collections import Counter

import pytest

from dragoman.config import loads
from dragoman.config.types import Config
from dragoman.routing.health import Health
from dragoman.routing.router import NoRoute, Router, merge_params, models, route, sticky, targets

UPSTREAMS = """
[upstreams.a]
protocol = "openai-chat"
base_url = "http://127.0.0.1:1"
models = ["listed", "both"]
[upstreams.b]
protocol = "openai-chat"
base_url = "http://127.0.0.1:2"
models = ["both"]
"""


def config(text: str) -> Config:
    return loads(UPSTREAMS + text)


def keys(config: Config, model: str, random: float = 0.0, health: Health | None = None) -> list[str]:
    return [choice.key for choice in Router(config).route(model, health or Health(), 0.0, lambda: random)]


def routes(*pairs: tuple[str, str]) -> str:
    return "".join(f'[[routes]]\nmatch = "{match}"\nto = {to}\n' for match, to in pairs)


def test_the_first_match_wins_and_lists_are_fallbacks() -> None:
    there = config(routes(("claude-*haiku*", '"a/small"'), ("claude-*", '["b/big", "a/*"]')))
    assert keys(there, "claude-haiku-4-5") == ["a/small"]
    assert keys(there, "Claude-Opus-5") == ["b/big", "a/Claude-Opus-5"]
    assert [c.why for c in route(there, "claude-x")] == ['route "claude-*"'] * 2


def test_the_star_keeps_the_clients_model_name() -> None:
    there = config(routes(("*", '["a/*", "b/vendor/*"]')))
    assert keys(there, "x/y") == ["a/x/y", "b/vendor/x/y"]


def test_a_target_is_tried_once() -> None:
    assert keys(config(routes(("*", '["a/m", "b/m", "a/*"]'))), "m") == ["a/m", "b/m"]


def test_clients_may_name_an_upstream() -> None:
    there = config(routes(("*haiku*", '"b/small"'), ("*", '"b/*"')))
    assert keys(there, "a/any/haiku") == ["a/any/haiku"]
    assert keys(there, "unknown/haiku") == ["b/small"]
    assert keys(config(routes(("a/old*", '"b/new"'))), "a/old-1") == ["b/new"]
    closed = loads("server.direct = false\n" + UPSTREAMS + routes(("*", '"b/*"')))
    assert keys(closed, "a/m") == ["b/a/m"]


def test_aliases() -> None:
    there = config('[aliases]\nfast = ["a/quick", "b/quick"]\n' + routes(("*", '"b/*"')))
    assert keys(there, "fast") == ["a/quick", "b/quick"]


@pytest.mark.parametrize(
    ("model", "target"),
    [
        ("claude-haiku-4-5", "a/s"),
        ("gpt-5-mini", "a/s"),
        ("gemini-3-flash", "a/s"),
        ("claude-sonnet-5", "a/m"),
        ("claude-opus-5", "a/l"),
        ("gemini-3-pro", "b/gemini-3-pro"),  # has "mini" in its name, but is not small
        ("MiniMax-M3", "b/MiniMax-M3"),
        ("special-opus", "b/special"),
    ],
)
def test_tiers_come_before_the_wildcard_route(model: str, target: str) -> None:
    there = config(
        routes(("special-*", '"b/special"'), ("*", '"b/*"'))
        + '[tiers]\nsmall = "a/s"\nmiddle = "a/m"\nbig = "a/l"\n'
    )
    assert keys(there, model) == [target]


def test_listed_models_need_no_route() -> None:
    there = config(routes(("x-*", '"b/x"')))
    assert keys(there, "listed") == ["a/listed"]
    assert keys(there, "both") == ["a/both", "b/both"]


def test_without_routes_the_first_upstream_gets_unlisted_models() -> None:
    there = loads(UPSTREAMS.replace('["both"]', '["other"]'))
    assert keys(there, "other") == ["b/other"]
    assert keys(there, "unheard-of") == ["a/unheard-of"]


def test_the_error_without_a_route_suggests_similar_models() -> None:
    there = config(routes(("claude-sonnet-5", '"a/glm-5"')))
    with pytest.raises(NoRoute) as caught:
        route(there, "claude-sonet-5")
    assert caught.value.status == 404
    assert caught.value.fault == "client"
    assert caught.value.message == (
        'no route matches the model "claude-sonet-5"; similar names are claude-sonnet-5; '
        "add a [[routes]] entry for it, or ask for upstream/model"
    )
    with pytest.raises(NoRoute, match='no route matches the model ""'):
        route(there, "")
    with pytest.raises(NoRoute):
        route(there, "a/*")


WEIGHTS = """[
    { target = "a/m", weight = 3 }, { target = "b/m", weight = 1 }, { target = "b/z", weight = 0 }, "a/last"
]"""


def test_weights_decide_the_first_target_and_the_others_follow() -> None:
    there = config(routes(("*", WEIGHTS)))
    drawn = Counter(tuple(keys(there, "x", i / 1000)) for i in range(1000))
    assert drawn == {
        ("a/m", "b/m", "b/z", "a/last"): 750,
        ("b/m", "a/m", "b/z", "a/last"): 250,
    }


def test_all_orders_of_equal_weights_are_equally_likely() -> None:
    three = ", ".join(f'{{ target = "a/{name}", weight = 1 }}' for name in "xyz")
    there = config(routes(("*", f"[{three}]")))
    drawn = Counter("".join(k[-1] for k in keys(there, "m", (i + 0.5) / 600)) for i in range(600))
    assert drawn == dict.fromkeys(("xyz", "xzy", "yxz", "yzx", "zxy", "zyx"), 100)


def test_conversations_are_distributed_evenly() -> None:
    assert sticky("session-1") == 0.515769491201528  # in every process
    values = [sticky(str(i)) for i in range(1000)]
    assert 0 <= min(values) < 0.01
    assert 0.99 < max(values) < 1


def test_cooling_targets_come_last() -> None:
    there = config(routes(("*", '["a/m", "b/m"]')))
    health = Health()
    health.failed("a/m", 0.0, retry_after=10)
    assert keys(there, "x", health=health) == ["b/m", "a/m"]


def test_listed_models() -> None:
    there = config(
        '[aliases]\nfast = "a/quick"\n'
        + routes(("gpt-x", '"b/glm"'), ("claude-*", '"a/*"'))
        + '[tiers]\nbig = "b/huge"'
    )
    assert models(there) == ("fast", "gpt-x", "a/listed", "a/both", "b/both", "b/glm", "a/quick", "b/huge")
    assert targets(there) == {"a/*", "b/*"}
    closed = loads("server.direct = false\n" + UPSTREAMS)
    assert models(closed) == ("listed", "both")


def test_params_are_merged_into_the_request() -> None:
    body = {"temperature": 1, "reasoning": {"effort": "low", "summary": "auto"}, "model": "m"}
    assert merge_params(body, {"reasoning": {"effort": "high"}, "temperature": 0.2, "seed": 1}) == {
        "temperature": 0.2,
        "reasoning": {"effort": "high", "summary": "auto"},
        "model": "m",
        "seed": 1,
    }
    assert body["temperature"] == 1


def never() -> float:
    raise AssertionError("there are no weights to draw by")


def test_a_cached_route_is_still_ordered_by_health() -> None:
    there = Router(config(routes(("m", '["a/x", "b/x"]'))))
    health = Health()
    assert [choice.key for choice in there.route("m", health, 0.0, never)] == ["a/x", "b/x"]
    health.failed("a/x", 0.0, retry_after=10.0)
    assert [choice.key for choice in there.route("m", health, 1.0, never)] == ["b/x", "a/x"]
    assert [choice.key for choice in there.route("m", health, 20.0, never)] == ["a/x", "b/x"]


def test_weights_are_drawn_for_every_request() -> None:
    weighted = '[{ target = "a/x", weight = 1.0 }, { target = "b/x", weight = 1.0 }]'
    there = Router(config(routes(("m", weighted))))
    first = [there.route("m", Health(), 0.0, lambda r=r: r)[0].key for r in (0.1, 0.9, 0.2)]
    assert first == ["a/x", "b/x", "a/x"]
