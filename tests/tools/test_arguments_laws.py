"""The laws of argument correction as properties over generated values, damage and chunkings."""

from __future__ import annotations

import json
import os
from typing import Any

import msgspec
import pytest
from argument_strategies import (
    HARMLESS,
    SPOILERS,
    TOOLS,
    chunkings,
    fitting_calls,
    spellings,
    spoiled_texts,
    texts,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.tools.arguments import LiveArguments, Outcome, WholeArguments
from dragoman.tools.rules import rules
from dragoman.tools.schema import compile_schema

ALL = rules()
# LAWS=5000 looks harder.
many = settings(max_examples=int(os.environ.get("LAWS", "400")), deadline=None)


def live(tool: str, chunks: list[str], ended: bool = False) -> tuple[str, Outcome]:
    call = LiveArguments(tool, compile_schema(TOOLS[tool]), ALL)
    given_out = "".join([call.feed(chunk) for chunk in chunks])
    return given_out, call.finish(ended=ended)


def whole(tool: str, chunks: list[str], ended: bool = False) -> Outcome:
    call = WholeArguments(tool, compile_schema(TOOLS[tool]), ALL)
    for chunk in chunks:
        assert call.feed(chunk) == ""
    return call.finish(ended=ended)


@many
@given(data=st.data(), call=fitting_calls())
def test_valid_input_is_byte_identical(data: Any, call: tuple[str, dict[str, Any]]) -> None:
    tool, value = call
    text = data.draw(spellings(value))
    assert compile_schema(TOOLS[tool]).fits(value)
    given_out, outcome = live(tool, data.draw(chunkings(text)))
    assert given_out + outcome.rest == outcome.text == text
    assert outcome.complete
    assert outcome.value == value
    assert outcome.fixes == ()
    assert outcome.problems == ()
    assert whole(tool, [text]).text == text


@many
@given(data=st.data(), spoiled=spoiled_texts(), ended=st.booleans())
def test_live_and_whole_agree(data: Any, spoiled: tuple[str, str], ended: bool) -> None:
    tool, text = spoiled
    chunks = data.draw(chunkings(text))
    given_out, outcome = live(tool, chunks, ended)
    other = whole(tool, chunks, ended)
    assert outcome.complete == other.complete
    assert given_out + outcome.rest == outcome.text
    assert other.rest == other.text
    if outcome.complete:
        assert outcome.text == other.text
        assert outcome.value == other.value == json.loads(outcome.text)
        assert outcome.fixes == other.fixes
        assert outcome.problems == other.problems
    else:
        assert outcome.rest == other.text == ""
        assert outcome.value is other.value is None
        assert outcome.problems


@many
@given(data=st.data(), spoiled=spoiled_texts(), ended=st.booleans())
def test_held_fragments_change_nothing(data: Any, spoiled: tuple[str, str], ended: bool) -> None:
    """A call that may be a copy is held first. Then all its fragments are read together."""
    tool, text = spoiled
    chunks = data.draw(chunkings(text))
    count = data.draw(st.integers(0, len(chunks)))
    call = LiveArguments(tool, compile_schema(TOOLS[tool]), ALL)
    for chunk in chunks[:count]:
        call.fragments.hold(chunk)
    given_out = "".join([call.release(), *(call.feed(chunk) for chunk in chunks[count:])])
    outcome = call.finish(ended=ended)
    assert given_out + outcome.rest == outcome.text
    assert outcome == msgspec.structs.replace(live(tool, chunks, ended)[1], rest=outcome.rest)
    assert call.fragments.received == text


@many
@given(spoiled=spoiled_texts())
def test_mending_twice_changes_nothing(spoiled: tuple[str, str]) -> None:
    tool, text = spoiled
    first = whole(tool, [text])
    if first.complete:
        again = whole(tool, [first.text])
        assert again.text == first.text
        assert again.fixes == ()


@many
@given(data=st.data(), call=fitting_calls())
def test_cut_call_is_never_complete(data: Any, call: tuple[str, dict[str, Any]]) -> None:
    tool, value = call
    text = data.draw(spellings(value)).strip()
    if value:
        cut = text[: data.draw(st.integers(1, len(text) - 1))]
        assert not live(tool, data.draw(chunkings(cut)))[1].complete


@many
@given(data=st.data(), call=fitting_calls())
def test_cut_inside_a_string_is_broken_even_if_the_upstream_says_finished(
    data: Any, call: tuple[str, dict[str, Any]]
) -> None:
    tool, value = call
    text = data.draw(spellings(value)).strip()
    cut = text[: data.draw(st.integers(0, len(text)))].rstrip()
    if cut.endswith((",", ":", "{", "[")) or _inside_string(cut):
        outcome = whole(tool, [cut], ended=True)
        assert not outcome.complete


@many
@given(data=st.data(), text=texts)
def test_no_text_raises_an_exception(data: Any, text: str) -> None:
    for tool in TOOLS:
        outcome = live(tool, data.draw(chunkings(text)))[1]
        assert outcome.complete == whole(tool, [text]).complete


@many
@given(data=st.data(), call=fitting_calls())
def test_an_invalid_object_that_no_rule_mends_is_unchanged(data: Any, call: tuple[str, Any]) -> None:
    """Valid JSON that does not fit the schema, and that no rule mends, passes unchanged."""
    tool = data.draw(st.sampled_from(sorted(TOOLS)))
    text = data.draw(spellings(call[1]))
    outcome = live(tool, data.draw(chunkings(text)))[1]
    if not outcome.fixes:
        assert outcome.complete
        assert outcome.text == text


@pytest.mark.parametrize("spoiler", sorted(SPOILERS))
@settings(max_examples=30, deadline=None)
@given(data=st.data(), call=fitting_calls())
def test_each_kind_of_damage_alone_is_mended(
    spoiler: str, data: Any, call: tuple[str, dict[str, Any]]
) -> None:
    tool, value = call
    text = SPOILERS[spoiler](data.draw(spellings(value)))
    given_out, outcome = live(tool, data.draw(chunkings(text)))
    other = whole(tool, [text])
    assert outcome.complete == other.complete
    assert given_out + outcome.rest == outcome.text
    if outcome.complete:
        assert (outcome.text, outcome.fixes) == (other.text, other.fixes)
    if spoiler in HARMLESS and value:
        assert outcome.value == value
        assert outcome.problems == ()


def _inside_string(text: str) -> bool:
    inside = escaped = False
    for char in text:
        if escaped:
            escaped = False
        elif char == "\\" and inside:
            escaped = True
        elif char == '"':
            inside = not inside
    return inside
