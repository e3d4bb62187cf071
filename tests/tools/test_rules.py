"""Every rule's docstring example is executed; every rule can be switched off; every rule is idempotent."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest

from dragoman.model.errors import DragomanError
from dragoman.tools.arguments import Outcome, assemble
from dragoman.tools.rules import RULES, Rule, rules
from dragoman.tools.schema import compile_schema


class Example:
    """The `before:`/`after:` lines of a rule's docstring."""

    def __init__(self, rule: Rule) -> None:
        folded = rule.doc.replace("\n    ", " ")  # a long line continues, indented, on the next one
        lines = dict(line.split(": ", 1) for line in folded.splitlines()[1:] if ": " in line)
        self.tool = lines.get("tool", "tool")
        self.schema: dict[str, Any] = json.loads(lines.get("schema", "{}"))
        python = lines.get("before-python")
        self.before: str = ast.literal_eval(python) if python else lines["before"]
        self.after = lines["after"]
        self.ended = lines.get("ended") == "yes"

    def run(self, text: str, off: tuple[str, ...] = ()) -> Outcome:
        call = assemble("live", self.tool, compile_schema(self.schema), rules(off))
        for char in text:
            call.feed(char)
        return call.finish(ended=self.ended)


examples = pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])


@examples
def test_example_is_true(rule: Rule) -> None:
    example = Example(rule)
    outcome = example.run(example.before)
    assert outcome.complete
    assert outcome.value == json.loads(example.after)
    assert outcome.problems == ()
    assert rule.name in {fix.rule for fix in outcome.fixes}


@examples
def test_result_needs_no_mending(rule: Rule) -> None:
    example = Example(rule)
    first = example.run(example.before)
    again = example.run(first.text)
    assert again.text == first.text
    assert again.fixes == ()


@examples
def test_rule_switched_off_does_nothing(rule: Rule) -> None:
    example = Example(rule)
    outcome = example.run(example.before, off=(rule.name,))
    assert rule.name not in {fix.rule for fix in outcome.fixes}
    assert not outcome.complete or outcome.problems or outcome.text != example.after


def test_names_are_unique_and_reasons_are_one_line() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule.reason.endswith(".")
        assert len(rule.reason) <= 100


def test_stages_are_in_order() -> None:
    stages = ["syntax", "types", "names", "defaults"]
    assert [rule.stage for rule in RULES] == sorted((rule.stage for rule in RULES), key=stages.index)


def test_unknown_rule_is_an_error() -> None:
    with pytest.raises(DragomanError, match="no-such-rule"):
        rules(["no-such-rule"])


def test_a_fix_is_short_and_has_a_reason() -> None:
    call = assemble("whole", "t", compile_schema({}), rules())
    call.feed('{"a": 1}' + " and so on" * 100)
    fix = call.finish().fixes[0]
    assert fix.rule == "trailing-text"
    assert len(fix.before) < 100
    assert fix.reason
