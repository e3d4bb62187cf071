"""Steps that the heads of several formats share."""

from __future__ import annotations

import re

from ..heads import NAME, Step

SPACE = re.compile(r"\s*")
QUOTE = re.compile(r"[\"']?")
REST_OF_TAG = re.compile(r"[^<>]*")
FENCE: tuple[Step, ...] = (("```json", "```", ""), SPACE)
COLON: tuple[Step, ...] = (SPACE, (":",), SPACE)


def named_tag(*openings: str) -> tuple[Step, ...]:
    """`<invoke name="…" …>`, with or without quotes and further attributes."""
    return (openings, QUOTE, NAME, QUOTE, REST_OF_TAG, (">",), SPACE)


def closing(*marks: str) -> tuple[str, ...]:
    """`</a>` for `<a>`."""
    return tuple(mark.replace("<", "</") for mark in marks)
