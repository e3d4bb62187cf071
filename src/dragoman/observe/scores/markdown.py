"""A report of scores as Markdown, to send to a provider."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from ...routing.reliability import percent
from ..receipts.score_counts import CALL_CLASSES
from .examples import Example
from .report import ScoreReport, Share, TargetScore

MAX_EXAMPLES = 5
"""Rules of each target that get an example: the most frequent ones."""
_MEANINGS = {
    "valid": "fits the tool's schema as it came",
    "mended": "did not fit; rules made it fit",
    "leaked": "written as text instead of a call; found in the text",
    "invalid": "does not fit the schema, and no rule could mend it",
    "invented": "names a tool that was not offered",
    "ghost": "an empty call without a name; dropped",
    "duplicate": "repeats a call of the same answer; dropped",
    "cut": "the answer ended before the call did",
}


def markdown(found: ScoreReport, examples: dict[str, Sequence[Example]]) -> str:
    """The report. `examples` are those of each target."""
    return "\n".join(_document(found, examples)) + "\n"


def _document(found: ScoreReport, examples: dict[str, Sequence[Example]]) -> Iterator[str]:
    yield "# Reliability of tool calls"
    yield ""
    yield f"From {_day(found.since)} to {_day(found.until)} (UTC), counted by Dragoman for each answer."
    yield "A range in brackets is the 95% Wilson interval of a share."
    for score in found.rows:
        yield ""
        yield from _target(score, examples.get(score.target, ()))
    if found.more:
        yield ""
        yield f"{found.more:,} more targets are left out."
    yield ""
    yield "In examples, `x` stands for a letter and `0` for a digit. Names of tools and parameters stay."


def _target(score: TargetScore, examples: Sequence[Example]) -> Iterator[str]:
    yield f"## {_cell(score.target)}"
    yield ""
    yield f"- Good answers: {shown(score.good)}. They did not fail, and each call was usable at once."
    failures = ", ".join(f"{kind} {count:,}" for kind, count in score.failures.items())
    yield f"- Failed attempts: {failures or 'none'}; attempts in all: {score.answers:,}."
    yield f"- Answers whose model had to repeat calls: {shown(score.reasked)}."
    first = score.first_event
    if first.count:
        half, most = within(first.half_within), within(first.nine_of_ten_within)
        yield f"- First content: half of the answers {half}, nine of ten {most} (of {first.count:,})."
    yield ""
    if not score.total_calls:
        yield "No tool calls."
        return
    yield "| tool calls | share | meaning |"
    yield "| --- | --- | --- |"
    for name in CALL_CLASSES:
        yield f"| {name} | {shown(score.calls[name])} | {_MEANINGS[name]} |"
    if score.rules:
        yield ""
        yield "| rule that mended | calls |"
        yield "| --- | --- |"
        yield from (f"| `{rule}` | {count:,} |" for rule, count in score.rules.items())
    for example in examples:
        yield ""
        yield from _example(example)


def _example(example: Example) -> Iterator[str]:
    where = f" at `{example.path}`" if example.path else ""
    reason = f": {_cell(example.reason)}" if example.reason else ""
    yield f"Example of `{example.rule}`, tool `{_cell(example.tool)}`{where}{reason}"
    yield ""
    yield "```text"
    yield f"before: {_line(example.before)}"
    yield f"after:  {_line(example.after)}"
    yield "```"


def shown(share: Share) -> str:
    """A share with its interval and its numbers, for people."""
    if share.share is None or share.low is None or share.high is None:
        return "nothing counted"
    interval = f"{percent(share.low)} to {percent(share.high)}"
    return f"{percent(share.share)} ({interval}), {share.count:,} of {share.of:,}"


def within(seconds: float | None) -> str:
    return "after more than 120 s" if seconds is None else f"within {seconds:g} s"


def _cell(text: str) -> str:
    """Text that may stand in a table or a heading, on one line."""
    return "".join(sign if sign.isprintable() else " " for sign in text).replace("|", "\\|")


def _line(text: str) -> str:
    return _cell(text).replace("\\|", "|").replace("```", "'''")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
