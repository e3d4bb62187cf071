"""The keys of `when`: conditions of a route on what a request is, not on the model that it names."""

from __future__ import annotations

from typing import Any

from ..profiles import PROFILES
from .nested_keys import ConfigKey, Keys, read_table
from .route_types import WhenConfig
from .values import Context, InvalidValue, flag, glob, list_of, nearest, text, whole_number


def _client(value: Any, context: Context) -> str:
    name = text(value, context)
    if name not in PROFILES:
        hint = nearest(name, PROFILES) or f"; known clients are {', '.join(PROFILES)}"
        raise InvalidValue(f'names the client "{name}", which is unknown{hint}')
    return name


WHEN: Keys = {
    "client": ConfigKey(_client, "text", "-", "The client that sends the request: `claude-code`, …"),
    "background": ConfigKey(
        flag,
        "true or false",
        "-",
        "Whether the client sends it in the background, for itself: titles, routing, quota checks.",
    ),
    "thinking": ConfigKey(flag, "true or false", "-", "Whether the client turns reasoning on."),
    "images": ConfigKey(flag, "true or false", "-", "Whether the conversation has images."),
    "tools": ConfigKey(
        list_of(glob, allow_single=True),
        "glob or list",
        "-",
        "The request offers a tool with one of these names. `web_search` is also a provider's own search.",
    ),
    "tokens_over": ConfigKey(
        whole_number(0), "whole number", "-", "The prompt has more tokens, as Dragoman estimates them."
    ),
}
"""In the order in which conditions are checked: the estimate of tokens takes longest."""


def when(value: Any, context: Context) -> WhenConfig:
    found = read_table(value, WHEN, context)
    if not found:
        raise InvalidValue(f"must have a condition: {', '.join(WHEN)}")
    return WhenConfig(**found)
