"""Choose targets for a model name, from the config and the health of targets. Pure.

The first match wins, in this order:

1. an alias;
2. `upstream/model` from the client (a route whose glob contains a slash comes first);
3. the routes before the first route for `*`;
4. the tiers;
5. the remaining routes;
6. an upstream that lists the model.

A route with conditions (`when`) matches only if the request meets them, too.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from ..config.types import Config, RouteConfig, TargetConfig, TiersConfig, UpstreamConfig
from ..config.values import glob_matches, has_wildcard
from ..model.errors import DragomanError, Fault
from ..protocols.base import Target
from .conditions import RequestTraits, Traits, why_met
from .health import Health
from .reliability import Rating, by_reliability

# The size of a model, by its name. "gemini" and "minimax" contain "mini" but are not small.
_SIZES = {
    "small": re.compile(r"haiku|(?<!ge)mini(?!max)|flash"),
    "middle": re.compile(r"sonnet"),
    "big": re.compile(r"opus"),
}
_MAX_SUGGESTIONS = 3
# Clients may invent model names. This bounds the memory that they can use.
_MAX_CACHED = 1024


class NoRoute(DragomanError):
    """No route matches the client's model name."""

    status = 404
    fault: Fault = "client"


class ChosenTarget(msgspec.Struct, frozen=True, kw_only=True):
    """One target for one request."""

    upstream: UpstreamConfig
    model: str
    """The model's name at the upstream."""
    params: dict[str, Any]
    why: str
    """The alias, route or tier that matched, for the log."""
    key: str
    """`upstream/model`: the key in `Health`."""
    target: Target
    """What the request writer needs to know."""


Draw = Callable[[], float]
"""Returns a number in 0…1: random, or fixed per conversation."""


class _Match(msgspec.Struct, frozen=True):
    """The targets of an alias, route or tier that matched, and its name."""

    targets: tuple[TargetConfig, ...]
    why: str
    reliable: bool = False
    """The more reliable targets come first."""


class Router:
    """Routes models by one config. Caches results: clients ask for the same few models."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._ratings: Mapping[str, Rating] = {}
        self.wants_ratings = any(route.prefer == "reliable" for route in config.routes)
        self.cached: dict[str, tuple[ChosenTarget, ...]] = {}
        """Cached choices by model name. Routes with weights or conditions are not cached: each request draws
        again, and may meet other conditions."""

    def route(
        self, model: str, health: Health, now: float, draw: Draw, traits: Traits | None = None
    ) -> tuple[ChosenTarget, ...]:
        """The targets in the order to try them, at least one. `draw` decides between weights.

        Without `traits`, no route with conditions matches.
        """
        choices = self.cached.get(model)
        if choices is None:
            choices = self._choose(model, draw, traits)
        return tuple(health.order(choices, _key, now)) if health.failing else choices

    def rate(self, ratings: Mapping[str, Rating]) -> None:
        """Use these ratings of targets, by `upstream/model`, from now on."""
        self._ratings = ratings
        self.cached.clear()

    def _choose(self, model: str, draw: Draw, traits: Traits | None) -> tuple[ChosenTarget, ...]:
        config = self._config
        name = model.removeprefix("models/")  # Gemini clients may send this prefix
        conditional = any(r.when is not None and glob_matches(r.match, name) for r in config.routes)
        known = traits() if conditional and traits is not None else None
        found = next(_matches(config, name, known), None)
        if found is None:
            raise NoRoute(_no_route(config, model))
        fixed = all(target.weight is None for target in found.targets)
        listed = found.targets if fixed else weighted_order(found.targets, draw())
        choices = _unique([_choice(config, target, name, found.why) for target in listed])
        if found.reliable and len(choices) > 1:
            choices = self._reliable_first(choices)
        if fixed and not conditional:
            if len(self.cached) >= _MAX_CACHED:
                self.cached.clear()
            self.cached[model] = choices
        return choices

    def _reliable_first(self, choices: tuple[ChosenTarget, ...]) -> tuple[ChosenTarget, ...]:
        ordered = by_reliability(choices, [choice.key for choice in choices], self._ratings)
        return tuple(
            msgspec.structs.replace(choice, why=f"{choice.why}, by reliability: {reason}")
            for choice, reason in ordered
        )


def route(config: Config, model: str) -> tuple[ChosenTarget, ...]:
    """The targets for `model` if all are healthy. Of targets with weights, the first comes first."""
    return Router(config).route(model, Health(), 0.0, float)


def _key(choice: ChosenTarget) -> str:
    return choice.key


def models(config: Config) -> tuple[str, ...]:
    """The model names to show to clients: aliases, routes for one model, and models that upstreams list."""
    names = [*config.aliases, *(r.match for r in config.routes if not has_wildcard(r.match))]
    listed = [f"{u.name}/{m.name}" for u in config.upstreams.values() for m in u.models]
    targets = [f"{t.upstream}/{t.model}" for t in _all_targets(config) if "*" not in t.model]
    if not config.server.direct:
        listed = [name.partition("/")[2] for name in listed]
        targets = []
    return tuple(dict.fromkeys([*names, *listed, *targets]))


def named_models(config: Config, upstream: str) -> tuple[str, ...]:
    """The models of `upstream` that routes, aliases and tiers name without `*`."""
    named = [t.model for t in _all_targets(config) if t.upstream == upstream and "*" not in t.model]
    return tuple(dict.fromkeys(named))


def named_targets(config: Config) -> tuple[tuple[str, str], ...]:
    """Upstream and model of all targets that routes, aliases and tiers name without `*`."""
    return tuple(dict.fromkeys((t.upstream, t.model) for t in _all_targets(config) if "*" not in t.model))


def targets(config: Config) -> frozenset[str]:
    """The keys for `Health.keep_only`. Clients may choose any model of an upstream, so all of them stay."""
    return frozenset(f"{name}/*" for name in config.upstreams)


def merge_params(body: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Set a target's `params` in an upstream request. Objects are merged, other values replaced."""
    result = dict(body)
    for name, value in params.items():
        old = result.get(name)
        old = msgspec.json.decode(old) if isinstance(old, msgspec.Raw) else old
        both = isinstance(old, dict) and isinstance(value, dict)
        result[name] = merge_params(cast(Any, old), cast(Any, value)) if both else value
    return result


def sticky(key: str) -> float:
    """A number in 0…1 for `key`. It keeps a conversation at one target, where its prompt cache is warm."""
    return int.from_bytes(hashlib.sha256(key.encode("utf-8", "replace")).digest()[:6]) / 2**48


def weighted_order(listed: tuple[TargetConfig, ...], random: float) -> list[TargetConfig]:
    """The order to try targets. Adjacent targets with weights are drawn; the others keep their places."""
    result: list[TargetConfig] = []
    group: list[TargetConfig] = []
    for target in listed:
        if target.weight is not None:
            group.append(target)
            continue
        result += [*_draw_all(group, random), target]
        group = []
    return result + _draw_all(group, random)


def _draw_all(group: list[TargetConfig], random: float) -> list[TargetConfig]:
    """Draw by weight, without replacement. The rest of `random` after one draw decides the next."""
    left = list(group)
    result: list[TargetConfig] = []
    while left:
        index, random = _draw([target.weight or 0.0 for target in left], random)
        result.append(left.pop(index))
    return result


def _draw(weights: list[float], random: float) -> tuple[int, float]:
    point = random * sum(weights)
    last = 0
    for index, weight in enumerate(weights):
        if weight <= 0:
            continue
        if point < weight:
            return index, point / weight
        point -= weight
        last = index
    return last, 0.0  # all weights are 0, or rounding


def _matches(config: Config, name: str, traits: RequestTraits | None) -> Iterator[_Match]:
    """All matches, best first."""
    for alias, listed in config.aliases.items():
        if alias.lower() == name.lower():
            yield _Match(listed, f'alias "{alias}"')
    direct = _direct(config, name)
    if direct is not None:
        # A route for `openrouter/*` is more specific than the direct form, so the user means it.
        yield from _routes([route for route in config.routes if "/" in route.match], name, traits)
        yield direct
    catch_all = next(
        (i for i, r in enumerate(config.routes) if r.match == "*" and r.when is None), len(config.routes)
    )
    yield from _routes(config.routes[:catch_all], name, traits)
    yield from _tier(config.tiers, name)
    yield from _routes(config.routes[catch_all:], name, traits)
    listing = [u.name for u in config.upstreams.values() if any(m.name == name for m in u.models)]
    if listing:
        yield _Match(tuple(TargetConfig(upstream=u, model=name) for u in listing), "listed by an upstream")


def _routes(routes: Sequence[RouteConfig], name: str, traits: RequestTraits | None) -> Iterator[_Match]:
    for route in routes:
        if not glob_matches(route.match, name):
            continue
        reliable = route.prefer == "reliable"
        if route.when is None:
            yield _Match(route.to, f'route "{route.match}"', reliable)
        elif traits is not None and (why := why_met(route.when, traits)) is not None:
            yield _Match(route.to, f'route "{route.match}" when {why}', reliable)


def _direct(config: Config, name: str) -> _Match | None:
    upstream, slash, model = name.partition("/")
    if not (config.server.direct and slash and model) or "*" in model or upstream not in config.upstreams:
        return None
    return _Match((TargetConfig(upstream=upstream, model=model),), "named by the client")


def _tier(tiers: TiersConfig, name: str) -> Iterator[_Match]:
    for size, pattern in _SIZES.items():
        listed: tuple[TargetConfig, ...] = getattr(tiers, size)
        if listed and pattern.search(name.lower()):
            yield _Match(listed, f"tier {size}")


def _choice(config: Config, target: TargetConfig, name: str, why: str) -> ChosenTarget:
    upstream = config.upstreams[target.upstream]
    model = target.model.replace("*", name)
    return ChosenTarget(
        upstream=upstream,
        model=model,
        params=target.params,
        why=why,
        key=f"{upstream.name}/{model}",
        target=upstream.target(model, strict=config.server.strict),
    )


def _unique(choices: list[ChosenTarget]) -> tuple[ChosenTarget, ...]:
    """Drop repeated targets: `up/m` and `up/*` may be the same."""
    by_key: dict[str, ChosenTarget] = {}
    for choice in choices:
        by_key.setdefault(choice.key, choice)
    return tuple(by_key.values())


def _all_targets(config: Config) -> Iterator[TargetConfig]:
    for route in config.routes:
        yield from route.to
    for listed in config.aliases.values():
        yield from listed
    yield from (*config.tiers.small, *config.tiers.middle, *config.tiers.big)


def _no_route(config: Config, model: str) -> str:
    known = models(config)
    by_key = {name.lower(): name for name in known}
    short = {name.rpartition("/")[2].lower(): name for name in known}
    near = difflib.get_close_matches(model.lower(), [*by_key, *short], n=2 * _MAX_SUGGESTIONS, cutoff=0.5)
    names = list(dict.fromkeys(by_key.get(key) or short[key] for key in near))[:_MAX_SUGGESTIONS]
    hint = f"; similar names are {', '.join(names)}" if names else ""
    advice = "add a [[routes]] entry for it, or ask for upstream/model"
    return f'no route matches the model "{model}"{hint}; {advice}'
