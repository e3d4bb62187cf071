"""Special cases of the newer formats of leaked calls, and text around calls."""

import json
from typing import Any

import pytest
from support.exchanges import exchange, run
from support.leaks import HERMES, LS, NS, found

from dragoman.conform import laws, neutral
from dragoman.tools.leaks import LeakFilter
from dragoman.tools.leaks.formats import FORMATS

PLAN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "hours": {"type": "integer"},
        "cost": {"type": "float"},
        "done": {"type": "boolean"},
        "who": {"type": "array", "items": {"$ref": "#/$defs/Person"}},
        "where": {"type": "object", "properties": {"zip": {"type": "string"}, "door": {"type": "integer"}}},
        "why": {"type": ["string", "null"]},
    },
    "$defs": {"Person": {"type": "object", "properties": {"age": {"type": "integer"}}}},
}
TOOLS: dict[str, Any] = {"plan": PLAN, "stop": {"type": "object", "properties": {}}, "free": None}


def one(text: str) -> Any:
    """The arguments of the single call that the whole text consists of."""
    left, [(name, arguments)] = found(text, TOOLS)
    assert (left, name) == ("", "plan")
    return arguments


# --- values ---


def m3(inner: str) -> str:
    return f'{NS}<tool_call>{NS}<invoke name="plan">{inner.replace("^", NS)}{NS}</invoke>{NS}</tool_call>'


@pytest.mark.parametrize(
    ("inner", "arguments"),
    [
        ("", {}),
        ("^<title>a < b ^</title>", {"title": "a < b "}),
        ("^<title><p>\n</p>^</title>", {"title": "<p>\n</p>"}),
        ("^<hours>7^</hours>^<cost>1.5^</cost>", {"hours": 7, "cost": 1.5}),
        ("^<hours>7</hours>^<done>true</done>", {"hours": 7, "done": True}),
        (
            "^<who>^<item>^<age>3^</age>^</item>^<item>^<age>4</age>^</item>^</who>",
            {"who": [{"age": 3}, {"age": 4}]},
        ),
        ("^<who>^</who>^<where>^</where>", {"who": [], "where": {}}),
        ('^<who>[{"age": 5}]^</who>', {"who": [{"age": 5}]}),
        ("^<where>^<zip>0150^</zip>^<door>2^</door>^</where>", {"where": {"zip": "0150", "door": 2}}),
        ("^ <why>null^ </why>", {"why": None}),
    ],
)
def test_minimax_m3(inner: str, arguments: Any) -> None:
    assert one(m3(inner)) == arguments


@pytest.mark.parametrize("inner", ["^<hours>7^</cost>", "^<hours>7", "^</hours>", "^<where>^<zip>1^</where>"])
def test_minimax_m3_with_unbalanced_tags_is_text(inner: str) -> None:
    assert found(m3(inner), TOOLS) == (m3(inner), [])


@pytest.mark.parametrize(
    ("inner", "arguments"),
    [
        ("{}", {}),
        ("{title:hello,done:true}", {"title": "hello", "done": True}),
        ("{title:10:30,hours:3}", {"title": "10:30", "hours": 3}),
        ("{title:two words,why:null}", {"title": "two words", "why": None}),
        ("{done:True,why:None}", {"done": True, "why": None}),
        ('{title:^a, {b}: [c] "d"^}', {"title": 'a, {b}: [c] "d"'}),
        ('{"title":"q","hours": 4}', {"title": "q", "hours": 4}),
        ("{who:[{age:3},{age:4}]}", {"who": [{"age": 3}, {"age": 4}]}),
        ("{where:{zip:^1^,door:-2}}", {"where": {"zip": "1", "door": -2}}),
        ("{where:{zip:abc}}", {"where": {"zip": "abc"}}),
    ],
)
@pytest.mark.parametrize(
    ("opens", "quote", "ends"),
    [("<|tool_call>", '<|"|>', "<tool_call|>"), ("<start_function_call>", "<escape>", "<end_function_call>")],
)
def test_gemma(opens: str, quote: str, ends: str, inner: str, arguments: Any) -> None:
    assert one(f"{opens}call:plan{inner.replace('^', quote)}{ends}") == arguments


@pytest.mark.parametrize(
    "inner", ["{title:}", "{title}", "{title:a,b c}", '{title:<|"|>a}', "{who:[1}", "{title:a}}", "{:a}"]
)
def test_gemma_that_cannot_be_read_is_text(inner: str) -> None:
    text = f"<|tool_call>call:plan{inner}<tool_call|>"
    assert found(text, TOOLS) == (text, [])


@pytest.mark.parametrize("end", ["", "\n", "<end_of_turn>\n", "<eos>"])
def test_a_complete_body_needs_no_end_mark_at_the_end_of_the_answer(end: str) -> None:
    for call in ("<|tool_call>call:plan{title:a}", "<function_calls>plan(title='a')"):
        left, calls = found(call + end, TOOLS)
        assert (left.strip(), calls) == ("", [("plan", {"title": "a"})])
        assert found(call + " and", TOOLS) == (call + " and", [])


def test_invalid_python_is_text() -> None:
    tools = {"trip": None}
    for frame in ("<|tool_call_start|>[{}]<|tool_call_end|>", "<function_calls>{}</function_calls>", "[{}]"):
        text = frame.format("trip(from='a\nb', in=\"from='c'\", class=1)")
        assert found(text, tools) == ("", [("trip", {"from": "a\nb", "in": "from='c'", "class": 1})])


@pytest.mark.parametrize("bars", ["|", "||", "\uff5c", "\uff5c\uff5c", "\u2016", "\uff5c\uff5c "])
def test_dsml_in_every_spelling(bars: str) -> None:
    tag = f"{bars.strip()}DSML{bars}"
    hours = f'<{tag}parameter name="hours" string="false">2</{tag}parameter>'
    call = f'<{tag}invoke name="plan">{hours}</{tag}invoke>'
    for wrapper in ("tool_calls", "function_calls", "calls"):
        text = f"<{tag}{wrapper}>\n{call}\n</{tag}{wrapper}>"
        assert one(text) == {"hours": 2}
    empty = f'<{tag}calls><{tag}invoke name="stop"/><{tag}invoke name="stop" /></{tag}calls>'
    assert found(empty, TOOLS) == ("", [("stop", {}), ("stop", {})])


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        ("number", "3", 3),
        ("boolean", "true", True),
        ("string", "3", "3"),
        ("array", "[1]", [1]),
        ("null", "null", None),
    ],
)
def test_kimi_k3_states_the_type(kind: str, written: str, value: Any) -> None:
    text = (
        f'<|open|>call tool="free" index="1"<|sep|><|open|>argument key="x" type="{kind}"<|sep|>{written}'
        "<|close|>argument<|sep|><|close|>call<|sep|>"
    )
    assert found(text, TOOLS) == ("", [("free", {"x": value})])


@pytest.mark.parametrize(
    ("inner", "arguments"),
    [
        ("<title>a</title><hours>2</hours>", {"title": "a", "hours": 2}),
        ("\n<title>\n<title>b</title> or </title>\n</title>\n", {"title": "<title>b</title> or </title>"}),
        ("\n<title></plan></title>\n", {"title": "</plan>"}),
        ("", {}),
    ],
)
def test_a_tool_name_as_a_tag_is_a_call(inner: str, arguments: Any) -> None:
    assert one(f"<plan>{inner}</plan>") == arguments


@pytest.mark.parametrize(
    "text",
    [
        "<plan>of the house</plan>",
        "<plan><room>1</room></plan>",
        "<plan><title>a</plan>",
        "Say <plan><title>a</title></plan>",
        "So:\n    <plan><title>a</title></plan>",
        "> <plan><title>a</title></plan>",
        "<plan>{hours}</plan>",
        "<planet><title>a</title></planet>",
        "Action: plan\nAction Input: soon",
        "Action: rest\nAction Input: {}",
        "see functools[1]",
        "<function_calls>print('a')</function_calls>",
        '<atem:function_calls><atem:invoke name="stop"></atem:invoke></atem:function_calls>',
    ],
)
def test_text_that_only_resembles_a_call_stays_text(text: str) -> None:
    assert found(text, TOOLS) == (text, [])


# --- text around calls ---


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"I look.{HERMES}Then I count.{HERMES}", "I look.Then I count."),
        (f"I look. {HERMES} Then I count. {HERMES} Done!", "I look.  Then I count.  Done!"),
        (f"look{HERMES}then{HERMES}", "lookthen"),
        (f"\u6211\u770b\u3002{HERMES}\u7b97\u3002{HERMES}", "\u6211\u770b\u3002\u7b97\u3002"),
        (f"1. Look! {HERMES} 2. Count! {HERMES}", "1. Look!  2. Count! "),
    ],
)
def test_a_call_between_sentences_is_a_call(text: str, left: str) -> None:
    assert found(text) == (left, [LS, LS])


@pytest.mark.parametrize(
    "text",
    [
        f"Write {HERMES} to look.",
        f"With {HERMES} I can look.",
        f"For example: {HERMES} This looks.",
        f'It says "{HERMES}" then.',
        f"({HERMES}) looks.",
        f"Look. {HERMES}, then count.",
        f"Look. {HERMES} looks.",
        f"\u8bf7\u5199{HERMES}\u6765",
    ],
)
def test_a_call_inside_a_sentence_is_text(text: str) -> None:
    assert found(text) == (text, [])


# --- messages without calls ---


@pytest.mark.parametrize(
    ("text", "left", "calls"),
    [
        ("<|open|>response<|sep|>Hi.<|close|>response<|sep|>", "Hi.", 0),
        ("<|content_text|>Hi.<|end_message|><|message_model|><|content_text|> You.", "Hi. You.", 0),
        (" to=self<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>Hi.<|eot|>", "Hm.Hi.", 0),
        (f"{HERMES}<|start|>assistant to=user<|message|>Hi.", "Hi.", 1),
        ("The token <|open|>response<|sep|> begins it.", "The token <|open|>response<|sep|> begins it.", 0),
        ("`<|content_text|>` is one", "`<|content_text|>` is one", 0),
        ("to=somebody<|message|>", "to=somebody<|message|>", 0),
        ("<|START_RESPONSE|>Hi.<|END_RESPONSE|>", "Hi.", 0),
    ],
)
def test_special_tokens_around_text_are_removed(text: str, left: str, calls: int) -> None:
    assert found(text) == (left, [LS] * calls)


def test_a_notice_reports_removed_tokens() -> None:
    it = exchange("openai-chat", "anthropic", [{"name": "Bash"}])
    run(it, [answer_text("<|open|>response<|sep|>Hi.")])
    assert [notice.rule for notice in it.notices] == ["frame-tokens-dropped"]
    assert "<|open|>response<|sep|>" in it.notices[0].message


# --- calls that are not JSON ---


def answer_text(text: str) -> bytes:
    def delta(content: dict[str, Any], finish: str | None) -> bytes:
        choice = {"index": 0, "delta": content, "finish_reason": finish}
        return b"data: %b\n\n" % json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode()

    pieces = [delta({"content": piece}, None) for piece in text]
    return b"".join([*pieces, delta({}, "stop"), b"data: [DONE]\n\n"])


@pytest.mark.parametrize("mode", ["live", "whole"])
@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "openai-responses", "gemini"])
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_call_that_is_not_json_is_never_sent(client: str, mode: str, size: int) -> None:
    tools = [{"name": "plan", "parameters": PLAN}]
    for arguments in ("{title}", '{"title": }', '{"title": "a", !}'):
        it = exchange("openai-chat", client, tools, mode=mode)
        body = answer_text(f'<tool_call>{{"name": "plan", "arguments": {arguments}}}</tool_call>')
        got = run(it, [body[at : at + size] for at in range(0, len(body), size)])
        answer = neutral.reduce(client, got, stream=True)
        assert laws.check(client, got, stream=True) == []
        assert answer["tool_calls"] == []
        assert "cannot be read" in answer["error"]["message"]
        [receipt] = it.receipts
        assert (receipt.dropped, receipt.complete, receipt.sent) == ("unreadable", False, "")
        assert (receipt.received, receipt.recovered) == (arguments, "hermes")
        assert receipt.problems


# --- the table ---


def test_the_table_has_models_and_shape_of_each_format() -> None:
    assert len({form.name for form in FORMATS}) == len(FORMATS)
    for form in FORMATS:
        assert form.models
        assert form.shape


def test_text_is_held_only_while_a_tag_may_name_a_tool() -> None:
    leaks = LeakFilter(TOOLS)
    assert leaks.feed("So\n<pl") == ["So\n"]
    assert leaks.feed("ay") == ["<play"]
    assert leaks.feed("\n<plan") == ["\n"]
    assert leaks.feed("> b") == ["<plan> b"]
