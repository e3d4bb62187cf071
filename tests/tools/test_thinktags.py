"""Reasoning in tags is split from the answer, for every chunking."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.conform import corpus
from dragoman.tools.think_tags import ThinkSplitter


def run(chunks: list[str], **options: bool) -> tuple[str, str]:
    """The answer and the reasoning."""
    splitter = ThinkSplitter(**options)
    pieces = [piece for chunk in chunks for piece in splitter.feed(chunk)] + splitter.close()
    assert not splitter.holding
    assert all(text for _, text in pieces)
    return tuple("".join(t for k, t in pieces if k == kind) for kind in ("text", "thinking"))


def split(text: str, **options: bool) -> tuple[str, str]:
    whole = run([text], **options)
    assert run(list(text), **options) == whole
    return whole


SPLIT = [
    ("<think>Plan</think>\n\nAnswer", "Answer", "Plan"),
    ("\n<think>\nPlan\n</think>Answer </think>", "Answer </think>", "\nPlan\n"),
    ("<thinking>Plan</thinking>A", "A", "Plan"),
    ("[THINK]Plan[/THINK]A", "A", "Plan"),
    ("◁think▷Plan◁/think▷A", "A", "Plan"),
    ("<|begin_of_thought|>Plan<|end_of_thought|>A", "A", "Plan"),
    (
        "<|channel|>analysis<|message|>Plan<|end|><|start|>assistant<|channel|>final<|message|>A",
        "A",
        "Plan",
    ),
    ("<|open|>think<|sep|>Plan <|sep|><|close|>think<|sep|>A", "A", "Plan <|sep|>"),
    ("<|close|>think<|sep|>A", "A", ""),
    ("<|message_model|><|content_thinking|>Plan<|end_message|>A", "A", "Plan"),
    ("<|content_thinking|>Plan<|end_message|>A", "A", "Plan"),
    ("<think></think>\n<think>Plan</think>A", "A", "Plan"),
    ("<think>cut", "", "cut"),
    ("<think>cut</thi", "", "cut</thi"),
    ("<think>close with `</think>` then</think>A", "A", "close with `</think>` then"),
    ("<think>run `ls`</think>A", "A", "run `ls`"),
    ("</think>\nAnswer", "Answer", ""),
    ("Use <think> here", "Use <think> here", ""),
    ("a </think> b", "a </think> b", ""),
    ("<thi", "<thi", ""),
    ("  plain", "  plain", ""),
    ("<thinker> is no tag", "<thinker> is no tag", ""),
    ("", "", ""),
    (" \n", " \n", ""),
    ("\n" * 2000 + "<think>a", "\n" * 2000 + "<think>a", ""),
]


@pytest.mark.parametrize(("text", "answer", "thinking"), SPLIT)
def test_tags_at_the_start_of_an_answer_are_reasoning(text: str, answer: str, thinking: str) -> None:
    assert split(text) == (answer, thinking)


UNOPENED = [
    ("Let me compute. </think>42", "42", "Let me compute. "),
    ("Plan\n</think>\n\n42 </think>", "42 </think>", "Plan\n"),
    ("Use `</think>` to close.", "Use `</think>` to close.", ""),
    ("Use <think> and </think>.", "Use <think> and </think>.", ""),
    ("```\n</think>\n```\nso", "```\n</think>\n```\nso", ""),
    ("Only an answer", "Only an answer", ""),
    ("<think>Plan</think>a</think>", "a</think>", "Plan"),
]


@pytest.mark.parametrize(("text", "answer", "thinking"), UNOPENED)
def test_text_before_a_lone_closing_tag_is_reasoning(text: str, answer: str, thinking: str) -> None:
    assert split(text, unopened=True) == (answer, thinking)


def test_after_reasoning_in_its_own_field_text_is_not_reasoning() -> None:
    splitter = ThinkSplitter(unopened=True)
    splitter.reasoning_seen()
    assert splitter.feed("</thi") == []
    assert splitter.feed("nk>\nAnswer") == [("text", "Answer")]
    assert splitter.feed(" a</think>") == [("text", " a</think>")]

    late = ThinkSplitter(unopened=True)
    assert late.feed("Answer") == []
    late.reasoning_seen()
    assert late.feed("!") == [("text", "Answer!")]


def test_only_the_beginning_of_a_tag_is_held() -> None:
    splitter = ThinkSplitter()
    assert splitter.feed("<think>a <") == [("thinking", "a ")]
    assert splitter.holding
    assert splitter.feed("b") == [("thinking", "<b")]
    assert splitter.feed("</think>So") == [("text", "So")]
    assert splitter.feed(" a <") == [("text", " a <")]


def _cases() -> list[Any]:
    cases = [case for case in corpus.cases() if "think" in case["id"]]
    return [pytest.param(c, id=c["id"]) for c in cases if c["upstream_protocol"] == "openai-chat"]


@pytest.mark.parametrize("case", _cases())
def test_corpus(case: dict[str, Any]) -> None:
    lines = re.findall(r"^data: (\{.*)$", case["upstream_sse"], re.MULTILINE)
    events = [json.loads(line) for line in lines]
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    seen = "".join(delta.get("reasoning_content") or "" for delta in deltas)
    chunks = [delta.get("content") or "" for delta in deltas]
    for pieces in (chunks, ["".join(chunks)], list("".join(chunks))):
        answer, thinking = run(pieces, unopened=not seen)
        assert answer.strip() == case["expect"]["text"].strip()
        assert seen + thinking == case["expect"].get("thinking", "")


_TEXTS = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<thinking>", "<|end|>", "`", "\n", " ", "word", "<", "</", "```",
         "<|channel|>analysis<|message|>", "<|channel|>final<|message|>"]
    ),
    max_size=9,
).map("".join)  # fmt: skip


@given(text=_TEXTS, unopened=st.booleans(), data=st.data())
@settings(max_examples=300, deadline=None)
def test_chunking_does_not_matter_and_words_are_kept(text: str, unopened: bool, data: st.DataObject) -> None:
    whole = split(text, unopened=unopened)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert run(chunks, unopened=unopened) == whole
    assert sum(part.count("word") for part in whole) == text.count("word")
