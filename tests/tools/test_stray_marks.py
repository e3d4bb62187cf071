"""An opening mark that a server left in the text before a call is dropped. Other text is not."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.answers import TOOLS, GeneratedAnswer, GeneratedBlock, stream, whole
from support.exchanges import exchange, run, sliced
from support.wires import ANTHROPIC, CHAT, GEMINI

from dragoman.conform import laws, neutral
from dragoman.model.events import Stop, Usage
from dragoman.protocols.registry import CLIENTS, PROTOCOLS
from dragoman.tools.leaks import LeakFilter
from dragoman.translation.translation import Translation

CALL = GeneratedBlock("call", ('{"key": 1}',))
USAGE = Usage(input=1, output=1)

LEFT = [
    ("<tool_call>", ""),
    ("<tool_call>\n", ""),
    ("\n\n<tool_call>", ""),
    ("<function", ""),  # Rapid-MLX#448, while it streams; the whole mark in its bodies
    ("Looking.\n\n<tool_call>\n", "Looking.\n\n"),
    ("Looking.\n<tool_call>\n<function", "Looking.\n"),
    ("Looking.<|tool_call", "Looking."),  # FreeToken#203
    ("Looking.<|tool_call>", "Looking."),
    ("Looking. <\uff5ctool\u2581calls\u2581begin\uff5c>", "Looking. "),
    ("`a < b`\n[TOOL_CALLS]", "`a < b`\n"),
]
KEPT = [
    "The tag is <tool_call>",  # after text it may be part of the text
    "The tag is `<tool_call>",
    "```\n<tool_call>",
    "> <tool_call>",
    "Like this:\n\n    <tool_call>",
    "Like this:\n\n    <function",
    "a <",
    "[1",
    "<too",
    "<tool_call> is a tag",
    "<tool_call>{",
    "<tool_call>\nBash",
    "</tool_call>",
]


def answer(text: tuple[str, ...], *after: GeneratedBlock) -> GeneratedAnswer:
    calls = any(said.kind == "call" for said in after)
    return GeneratedAnswer((GeneratedBlock("text", text), *after), USAGE, Stop.TOOL if calls else Stop.END)


def understood(
    upstream: str,
    client: str,
    said: GeneratedAnswer,
    *,
    size: int = 1 << 20,
    streamed: bool = True,
    **options: Any,
) -> tuple[dict[str, Any], Translation]:
    it = exchange(upstream, client, TOOLS, stream=streamed, **options)
    body = stream(said, upstream) if streamed else whole(said, upstream)
    got = run(it, sliced(body, size))
    assert laws.check(client, got, stream=streamed) == []
    return neutral.reduce(client, got, stream=streamed), it


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "body"])
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_a_lone_mark_before_a_call_is_dropped(upstream: str, client: str, streamed: bool) -> None:
    for text, left in LEFT:
        said, it = understood(upstream, client, answer((text,), CALL), streamed=streamed)
        assert (said["text"], len(said["tool_calls"])) == (left, 1), text
        [fix] = it.receipts[0].fixes
        assert (fix.rule, fix.path, fix.after) == ("mark-before-call", "text", "")
        assert (left + fix.before).split() == text.split()
        assert it.receipts[0].complete
        assert not it.receipts[0].problems


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_text_that_may_be_intended_is_kept(upstream: str, client: str) -> None:
    for text in KEPT:
        said, it = understood(upstream, client, answer((text,), CALL))
        assert (said["text"], len(said["tool_calls"])) == (text, 1)
        assert it.receipts[0].rules == ()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("upstream", PROTOCOLS)
@pytest.mark.parametrize(
    "after", [(), (GeneratedBlock("thinking", ("hm",)), CALL)], ids=["nothing", "a thought"]
)
def test_a_mark_without_a_following_call_is_text(
    upstream: str, client: str, after: tuple[GeneratedBlock, ...]
) -> None:
    for text, _ in LEFT:
        said, it = understood(upstream, client, answer((text,), *after))
        assert said["text"] == text
        assert not any(receipt.fixes for receipt in it.receipts)


@pytest.mark.parametrize("name", [name for name in PROTOCOLS if name != GEMINI])
def test_between_equal_protocols_the_call_is_not_delayed(name: str) -> None:
    call = GeneratedBlock("call", ('{"key": 1, "note": "', "one ", "two ", "three", '"}'))
    body = stream(answer(("Looking", ".\n", "<tool_call>"), call), name)
    cut = body.index(b"\n\n", body.index(b"two ")) + 2
    it = exchange(name, name, TOOLS)
    early = it.feed(body[:cut])
    assert b"two " in early
    got = early + it.feed(body[cut:]) + it.close()
    assert laws.check(name, got, stream=True) == []
    assert neutral.reduce(name, got, stream=True)["text"] == "Looking.\n"


@pytest.mark.parametrize("rule", ["mark-before-call", "call-in-text"])
def test_the_rule_can_be_switched_off(rule: str) -> None:
    said, _ = understood(CHAT, ANTHROPIC, answer(("<tool_call>",), CALL), rules_off=frozenset({rule}))
    assert (said["text"], len(said["tool_calls"])) == ("<tool_call>", 1)


# --- laws ---

_PIECES = [
    "<tool_call>", "<function", "<function=", "<tool", "<|tool_call>", "<|tool_c", "[TOOL_CALLS]",
    '<tool_call>{"name": "store", "arguments": {"key": 2}}</tool_call>', "</tool_call>", "<|im_end|>",
    "`", "```", "> ", "    ", "\n", "\n\n", " ", "word", "Ok.", "<", "[", "{",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(_PIECES), min_size=1, max_size=7).map("".join)


def _cut(data: st.DataObject, text: str) -> list[str]:
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=6)))
    return [piece for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True) if (piece := text[a:b])]


def filtered(chunks: list[str]) -> tuple[str, str, str]:
    """The text that the filter returns, the mark it removes, and the text it drops."""
    leaks = LeakFilter({"store": None})
    segments = [segment for chunk in chunks for segment in leaks.feed(chunk)]
    mark = leaks.take_mark()
    segments += leaks.close()
    assert not leaks.holding
    return "".join(s if isinstance(s, str) else s.raw for s in segments), mark, leaks.dropped


@given(text=TEXTS, data=st.data())
@settings(max_examples=500, deadline=None)
def test_nothing_is_lost_and_chunking_does_not_matter(text: str, data: st.DataObject) -> None:
    said, mark, dropped = filtered([text])
    assert said + dropped + mark == text
    assert mark.strip() or not mark
    assert filtered(_cut(data, text)) == (said, mark, dropped)
    assert filtered(list(text)) == (said, mark, dropped)


@given(
    text=TEXTS,
    data=st.data(),
    upstream=st.sampled_from(list(PROTOCOLS)),
    client=st.sampled_from(list(CLIENTS)),
    after=st.sampled_from(
        [
            (),
            (CALL,),
            (CALL, GeneratedBlock("text", ("So. <tool_call>",)), GeneratedBlock("call", ('{"key": 3}',))),
        ]
    ),
)
@settings(max_examples=300, deadline=None)
def test_every_cut_gives_the_same_answer(
    text: str, data: st.DataObject, upstream: str, client: str, after: tuple[GeneratedBlock, ...]
) -> None:
    """Cuts of text and of bytes, live and whole, streamed and not."""
    expected, it = understood(upstream, client, answer((text,), *after))
    fixes = [receipt.fixes for receipt in it.receipts]
    for options in ({}, {"mode": "whole"}, {"size": data.draw(st.integers(1, 90))}):
        said, again = understood(upstream, client, answer(tuple(_cut(data, text)), *after), **options)
        assert said["text"] == expected["text"]
        assert [c["arguments"] for c in said["tool_calls"]] == [
            c["arguments"] for c in expected["tool_calls"]
        ]
        assert [receipt.fixes for receipt in again.receipts] == fixes
    off, _ = understood(upstream, client, answer((text,), *after), rules_off=frozenset({"mark-before-call"}))
    taken_out = "".join(fix.before for found in fixes for fix in found)
    assert sorted("".join((expected["text"] + taken_out).split())) == sorted("".join(off["text"].split()))
