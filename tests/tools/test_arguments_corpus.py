"""The argument texts of the corpus are mended as each case expects, for every chunking."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.conform import corpus
from dragoman.tools.arguments import Mode, Outcome, assemble
from dragoman.tools.rules import rules
from dragoman.tools.schema import compile_schema

THEMES = {
    "alias", "coerce", "args-syntax", "args-shape", "args-values", "wrapper", "guard", "truncation",
}  # fmt: skip
ALL = rules()


def cases() -> list[dict[str, Any]]:
    return [case for case in corpus.cases(*THEMES) if calls(case)]


def calls(case: dict[str, Any]) -> dict[int, tuple[str, list[str]]]:
    """The calls of a Chat stream: index -> name and argument fragments."""
    found: dict[int, tuple[str, list[str]]] = {}
    if case["upstream_protocol"] != "openai-chat" or "upstream_sse" not in case:
        return found
    for line in case["upstream_sse"].split("\n"):
        if line.startswith("data: {"):
            for choice in json.loads(line[6:])["choices"]:
                for call in choice["delta"].get("tool_calls", []):
                    function = call["function"]
                    _, fragments = found.setdefault(call["index"], (function.get("name", ""), []))
                    text = function["arguments"]
                    if text is not None:
                        fragments.append(text if isinstance(text, str) else json.dumps(text))
    return found


def correct(case: dict[str, Any], name: str, fragments: list[str], mode: Mode) -> Outcome:
    schemas = {tool["name"]: tool["parameters"] for tool in case["request_tools"]}
    call = assemble(mode, name, compile_schema(schemas.get(name)), ALL)
    given_out = "".join([call.feed(fragment) for fragment in fragments])
    outcome = call.finish(ended='"finish_reason":"tool_calls"' in case["upstream_sse"])
    assert given_out + outcome.rest == outcome.text
    return outcome


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
@pytest.mark.parametrize("mode", ["live", "whole"])
@pytest.mark.parametrize("drip", [False, True])
def test_arguments_of_a_case(case: dict[str, Any], mode: Mode, drip: bool) -> None:
    complete: list[dict[str, Any]] = []
    for name, fragments in calls(case).values():
        pieces = list("".join(fragments)) if drip else fragments
        outcome = correct(case, name, pieces, mode)
        if outcome.complete:
            complete.append({"name": name, "arguments": outcome.value})
    assert complete == case["expect"]["tool_calls"]


def test_the_corpus_has_cases() -> None:
    assert len(cases()) > 40
