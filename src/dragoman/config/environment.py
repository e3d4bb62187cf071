"""Make a config from environment variables, for users who have provider keys set and no config file.

The result is the document that a file would hold, so `read.py` checks both in the same way.
`BIG_MODEL`, `MIDDLE_MODEL` and `SMALL_MODEL`, with `OPENAI_BASE_URL` and `OPENAI_API_KEY`, have the meaning
they have in claude-code-proxy: the models that replace the three sizes of Claude.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .providers import Provider, providers
from .urls import BadUrl, endpoint

Table = dict[str, Any]


def document(env: Mapping[str, str]) -> Table:
    """The upstreams, routes and tiers from `env`; empty if it has no provider key."""
    upstreams = found_upstreams(env)
    if not upstreams:
        return {}
    tiers = _tiers(env, upstreams)
    return {
        "upstreams": upstreams,
        **({"tiers": tiers, "routes": _routes(upstreams, tiers)} if tiers else {}),
    }


def found_upstreams(env: Mapping[str, str]) -> dict[str, Table]:
    """One upstream for each provider with a key in `env`, in the order of `providers.toml`."""
    found = {
        name: upstream_of(provider, env) for name, provider in providers().items() if not provider.only_named
    }
    return {name: table for name, table in found.items() if table is not None}


def upstream_of(provider: Provider, env: Mapping[str, str]) -> Table | None:
    """The `[upstreams.NAME]` table for one provider; None if `env` has neither its key nor its address."""
    variable = next((name for name in provider.variables() if env.get(name, "").strip()), None)
    url = env.get(provider.base_url_env, "").strip() if provider.base_url_env else ""
    if variable is None and not url:
        return None
    # Only the name of the variable, never the key: the config may be shown, and the key may change.
    credential = f"env:{variable}" if variable else "none"
    if not url:
        # Some providers have a different address for each customer (Azure): the key alone is not enough.
        known = "{" not in provider.upstream.get("base_url", "{")
        return {"provider": provider.name, "credential": credential} if known else None
    if provider.elsewhere and not _is_at(provider, url):
        # The variables name another server, such as a local one with OpenAI's variables.
        return {"protocol": provider.elsewhere, "base_url": url, "credential": credential}
    return {"provider": provider.name, "base_url": url, "credential": credential}


def _is_at(provider: Provider, url: str) -> bool:
    try:
        return endpoint(url, provider.protocol).origin in provider.origins()
    except BadUrl:
        return False  # `read.py` reports the bad URL


def _tiers(env: Mapping[str, str], upstreams: dict[str, Table]) -> Table:
    small, middle, big = (env.get(f"{size}_MODEL", "").strip() for size in ("SMALL", "MIDDLE", "BIG"))
    big = big or middle or small
    if not big:
        return {}
    middle = middle or big
    sizes = {"small": small or middle, "middle": middle, "big": big}
    return {size: _target(model, upstreams) for size, model in sizes.items()}


def _target(model: str, upstreams: dict[str, Table]) -> str:
    """Where a model of the environment goes: to the server of `OPENAI_…` if that is set.

    Its model names may contain slashes (OpenRouter), so `a/b` is then not `upstream/model`.
    """
    if "openai" in upstreams:
        return f"openai/{model}"
    if model.partition("/")[0] in upstreams and "/" in model:
        return model
    return f"{next(iter(upstreams))}/{model}"


def _routes(upstreams: dict[str, Table], tiers: Table) -> list[Table]:
    """Claude models go to their tier, else to the big tier. Other families go to their provider."""
    routes: list[Table] = [
        {"match": "*haiku*", "to": tiers["small"]},
        {"match": "*sonnet*", "to": tiers["middle"]},
        {"match": "*opus*", "to": tiers["big"]},
        {"match": "claude*", "to": tiers["big"]},
    ]
    for name, table in upstreams.items():
        families = providers()[table["provider"]].families if "provider" in table else ()
        routes += [
            {"match": family, "to": f"{name}/*"} for family in families if not family.startswith("claude")
        ]
    return [*routes, {"match": "*", "to": f"{next(iter(_openai_first(upstreams)))}/*"}]


def _openai_first(upstreams: dict[str, Table]) -> list[str]:
    return sorted(upstreams, key=lambda name: name != "openai")


def no_upstream() -> str:
    """What to do with a config file that names no upstream."""
    return (
        "there is no upstream: the file has no [upstreams.NAME], and the environment has no provider key; "
        f"add an upstream to the file, or set a key such as {_usual_variables()}"
    )


def no_config() -> str:
    """What to do without a config file and without a key."""
    return (
        "there is no upstream, because there is no config file and no provider key in the environment; "
        f"run `dragoman init` to write a dragoman.toml, or set a key such as {_usual_variables()}"
    )


def _usual_variables() -> str:
    usual = [p.variables()[0] for p in providers().values() if not p.only_named and "base_url" in p.upstream]
    return ", ".join(usual[:3])
