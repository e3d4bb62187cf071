"""Find a misspelt model name, from the config and from the gateway's list of models."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from ...config.types import Config


def wrong_upstream(config: Config, model: str) -> str | None:
    """A sentence if `model` starts with a misspelt upstream. Models of OpenRouter contain slashes, too."""
    name, slash, _ = model.partition("/")
    if not slash or name in config.upstreams:
        return None
    near = difflib.get_close_matches(name, config.upstreams, 1, 0.75)
    return f"there is no upstream {name!r}; did you mean {near[0]!r}?" if near else None


def similar_model(model: str, listed: Sequence[str]) -> str | None:
    """The listed model that `model` probably means; None if `model` is listed or nothing is similar."""
    if model in listed:
        return None
    near = difflib.get_close_matches(model, listed, 1, 0.85)
    return near[0] if near else None
