"""Where a request goes: pure choice from the client's model name, the config and the health of targets.

In this order, the first that fits:

1. an alias;
2. `upstream/model`, named by the client itself (a route whose own glob holds a slash comes before);
3. the routes, up to the first that takes everything (`*`);
4. the tiers;
5. the remaining routes;
6. an upstream that lists the model.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import msgspec

from ..config.types import Config, RouteConfig, TargetConfig, TiersConfig, UpstreamConfig
from ..config.values import fits, is_wild
from ..model.errors import DragomanError, Fault
from ..protocols.base import Target
from .health import Health

# The sizes in the names of models. "gemini" and "minimax" are not small for having "mini" in them.
_SIZES = {
    "small": re.compile(r"haiku|(?<!ge)mini(?!max)|flash"),
    "middle": re.compile(r"sonnet"),
    "big": re.compile(r"opus"),
}
_SHOWN = 3  # near names in an error
# Clients may name models themselves: what is kept must not grow with their inventions.
_MOST_KEPT = 1024


class NoRoute(DragomanError):
    """No route takes the model the client asked for."""

    status = 404
    fault: Fault = "client"


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One target for one request."""

    upstream: UpstreamConfig
    model: str
    """The name the upstream knows it by."""
    params: dict[str, Any]
    why: str
    """What led here, for the log."""
    key: str
    """`upstream/model`: what its health is kept under."""
    target: Target
    """The facts a request for it is written by."""


Draw = Callable[[], float]
"""Gives a number in 0…1, by chance or not."""


class _Found(msgspec.Struct, frozen=True):
    """The targets of the first thing that fits, and what that was."""

    targets: tuple[TargetConfig, ...]
    why: str


class Router:
    """Finds the ways through one config. Clients ask for the same few models: what was found is kept."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self.fixed: dict[str, tuple[Choice, ...]] = {}
        """Where no weights are to be drawn by, the same choices every time."""

    def route(self, model: str, health: Health, now: float, draw: Draw) -> tuple[Choice, ...]:
        """Where to try, in order: never empty. Only among weights `draw` decides."""
        choices = self.fixed.get(model)
        if choices is None:
            choices = self._found(model, draw)
        return tuple(health.order(choices, _key, now)) if health.trouble else choices

    def _found(self, model: str, draw: Draw) -> tuple[Choice, ...]:
        config = self._config
        name = model.removeprefix("models/")  # as Gemini's clients may say it
        found = next(_matches(config, name), None)
        if found is None:
            raise NoRoute(_no_route(config, model))
        fixed = all(target.weight is None for target in found.targets)
        listed = found.targets if fixed else drawn(found.targets, draw())
        choices = _once([_choice(config, target, name, found.why) for target in listed])
        if fixed:
            if len(self.fixed) >= _MOST_KEPT:
                self.fixed.clear()
            self.fixed[model] = choices
        return choices


def route(config: Config, model: str) -> tuple[Choice, ...]:
    """Where a request for `model` would be tried if all were well, the first of those with weights first."""
    return Router(config).route(model, Health(), 0.0, float)


def _key(choice: Choice) -> str:
    return choice.key


def models(config: Config) -> tuple[str, ...]:
    """The model names clients are shown: aliases, routes that name one model, and what upstreams list."""
    names = [*config.aliases, *(r.match for r in config.routes if not is_wild(r.match))]
    listed = [f"{u.name}/{m.name}" for u in config.upstreams.values() for m in u.models]
    targets = [f"{t.upstream}/{t.model}" for t in _all_targets(config) if "*" not in t.model]
    if not config.server.direct:
        listed = [name.partition("/")[2] for name in listed]
        targets = []
    return tuple(dict.fromkeys([*names, *listed, *targets]))


def named_models(config: Config, upstream: str) -> tuple[str, ...]:
    """The models of `upstream` that routes, aliases and tiers name in full."""
    named = [t.model for t in _all_targets(config) if t.upstream == upstream and "*" not in t.model]
    return tuple(dict.fromkeys(named))


def targets(config: Config) -> frozenset[str]:
    """What is worth remembering the health of: whatever models its upstreams have, clients may name them."""
    return frozenset(f"{name}/*" for name in config.upstreams)


def merged(body: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """An upstream's request with a target's parameters set; tables are merged, all else is replaced."""
    result = dict(body)
    for name, value in params.items():
        old = result.get(name)
        old = msgspec.json.decode(old) if isinstance(old, msgspec.Raw) else old
        both = isinstance(old, dict) and isinstance(value, dict)
        result[name] = merged(cast(Any, old), cast(Any, value)) if both else value
    return result


def sticky(key: str) -> float:
    """A number in 0…1, the same whenever `key` is: it keeps a conversation at one target, its cache warm."""
    return int.from_bytes(hashlib.sha256(key.encode("utf-8", "replace")).digest()[:6]) / 2**48


def drawn(listed: tuple[TargetConfig, ...], random: float) -> list[TargetConfig]:
    """In order of trial: neighbours with weights are drawn among each other, the others keep their places."""
    result: list[TargetConfig] = []
    group: list[TargetConfig] = []
    for target in listed:
        if target.weight is not None:
            group.append(target)
            continue
        result += [*_drawn(group, random), target]
        group = []
    return result + _drawn(group, random)


def _drawn(group: list[TargetConfig], random: float) -> list[TargetConfig]:
    """By weight, without putting back. What is left of `random` after one draw decides the next."""
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
    return last, 0.0  # nothing but zeros, or rounding


def _matches(config: Config, name: str) -> Iterator[_Found]:
    """Everything that fits, best first."""
    for alias, listed in config.aliases.items():
        if alias.lower() == name.lower():
            yield _Found(listed, f'alias "{alias}"')
    direct = _direct(config, name)
    if direct is not None:
        yield from _routes(config, name, lambda match: "/" in match)
        yield direct
    everything = next((i for i, r in enumerate(config.routes) if r.match == "*"), len(config.routes))
    yield from _routes(config, name, lambda match: True, config.routes[:everything])
    yield from _tier(config.tiers, name)
    yield from _routes(config, name, lambda match: True, config.routes[everything:])
    listing = [u.name for u in config.upstreams.values() if any(m.name == name for m in u.models)]
    if listing:
        yield _Found(tuple(TargetConfig(upstream=u, model=name) for u in listing), "listed by an upstream")


def _routes(
    config: Config,
    name: str,
    among: Callable[[str], bool],
    routes: tuple[RouteConfig, ...] | None = None,
) -> Iterator[_Found]:
    for one in config.routes if routes is None else routes:
        if among(one.match) and fits(one.match, name):
            yield _Found(one.to, f'route "{one.match}"')


def _direct(config: Config, name: str) -> _Found | None:
    upstream, slash, model = name.partition("/")
    if not (config.server.direct and slash and model) or "*" in model or upstream not in config.upstreams:
        return None
    return _Found((TargetConfig(upstream=upstream, model=model),), "named by the client")


def _tier(tiers: TiersConfig, name: str) -> Iterator[_Found]:
    for size, pattern in _SIZES.items():
        listed: tuple[TargetConfig, ...] = getattr(tiers, size)
        if listed and pattern.search(name.lower()):
            yield _Found(listed, f"tier {size}")


def _choice(config: Config, target: TargetConfig, name: str, why: str) -> Choice:
    upstream = config.upstreams[target.upstream]
    model = target.model.replace("*", name)
    return Choice(
        upstream=upstream,
        model=model,
        params=target.params,
        why=why,
        key=f"{upstream.name}/{model}",
        target=upstream.target(model, strict=config.server.strict),
    )


def _once(choices: list[Choice]) -> tuple[Choice, ...]:
    """A target that is listed twice, by name and by `*`, is tried once."""
    by_key: dict[str, Choice] = {}
    for choice in choices:
        by_key.setdefault(choice.key, choice)
    return tuple(by_key.values())


def _all_targets(config: Config) -> Iterator[TargetConfig]:
    for one in config.routes:
        yield from one.to
    for listed in config.aliases.values():
        yield from listed
    yield from (*config.tiers.small, *config.tiers.middle, *config.tiers.big)


def _no_route(config: Config, model: str) -> str:
    known = models(config)
    by_key = {name.lower(): name for name in known}
    short = {name.rpartition("/")[2].lower(): name for name in known}
    near = difflib.get_close_matches(model.lower(), [*by_key, *short], n=2 * _SHOWN, cutoff=0.5)
    names = list(dict.fromkeys(by_key.get(key) or short[key] for key in near))[:_SHOWN]
    hint = f"; near it are {', '.join(names)}" if names else ""
    return (
        f'no route takes the model "{model}"{hint}; add a [[routes]] entry for it, or ask for upstream/model'
    )
