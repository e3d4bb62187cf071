"""The keys of `[search]`."""

from __future__ import annotations

from .nested_keys import ConfigKey, Keys, command, search_url
from .values import list_of, positive_duration, text, whole_number

SEARCH: Keys = {
    "url": ConfigKey(
        search_url,
        "text",
        "-",
        "A search engine that answers `GET …?q=QUERY&format=json` as SearXNG does.",
    ),
    "command": ConfigKey(
        command,
        "text or list",
        "-",
        "A program that gets the query as its last argument and prints the same JSON; instead of `url`.",
    ),
    "env": ConfigKey(
        list_of(text),
        "list of texts",
        "[]",
        "Environment variables that the program gets besides common ones.",
    ),
    "max_uses": ConfigKey(whole_number(1, 50), "whole number", "5", "The most searches for one answer."),
    "results": ConfigKey(
        whole_number(1, 20), "whole number", "5", "How many pages the model gets from a search."
    ),
    "timeout": ConfigKey(positive_duration, "time", '"10s"', "How long a search may take."),
}
