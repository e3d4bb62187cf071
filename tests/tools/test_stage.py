"""The tool stage: tool names, ids, duplicate calls, cut calls and receipts."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from support.exchanges import exchange, run

from dragoman.conform import laws, neutral
from dragoman.model.messages import Tool
from dragoman.protocols.common import call_ids
from dragoman.protocols.common.tool_names import NameRule, ToolNames
from dragoman.tools.rules import ANSWER_RULES
from dragoman.translation.translation import Translation

BASH = {
    "name": "Bash",
    "parameters": {
        "type": "object",
        "properties": {"command": {"type": "string"}, "timeout": {"type": "integer"}},
        "required": ["command"],
    },
}
READ = {
    "name": "Read",
    "parameters": {
        "type": "object",
        "properties": {"file_path": {"type": "string"}},
        "required": ["file_path"],
    },
}
ANY = {"name": "note", "parameters": {"type": "object"}}


def call(name: str, arguments: str, *, id: str = "", index: int = 0) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}


def chat(deltas: Sequence[dict[str, Any]], finish: str | None = "tool_calls") -> bytes:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    frames = [head | {"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    if finish:
        frames.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    data = b"".join(b"data: " + msgspec.json.encode(f) + b"\n\n" for f in frames)
    return data + (b"data: [DONE]\n\n" if finish else b"")


def understood(
    *deltas: dict[str, Any],
    finish: str | None = "tool_calls",
    client: str = "anthropic",
    tools: Sequence[dict[str, Any]] = (BASH, READ, ANY),
    **options: Any,
) -> tuple[dict[str, Any], Translation]:
    it = exchange("openai-chat", client, tools, **options)
    data = run(it, [chat(deltas, finish)])
    assert laws.check(client, data, stream=True) == []
    return neutral.reduce(client, data, stream=True), it


def names(said: dict[str, Any]) -> list[str]:
    return [c["name"] for c in said["tool_calls"]]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("bash", "Bash"),
        ("functions.Bash", "Bash"),
        ("default_api.Read", "Read"),
        ("Bash<|channel|>commentary", "Bash"),
        ("Bash\n", "Bash"),
        ("Bash2", "Bash2"),  # no declared tool
        ("functions.Read:0", "Read"),
        ("tool:read", "Read"),
        ("Web-Search", "web_search"),
        ("list_issues", "mcp__hub__list_issues"),
        ("add", "add"),  # two servers have a tool of this name
        ("browser_open", "browser_open"),
    ],
)
def test_a_name_is_mended_only_if_it_fits_one_tool(given: str, meant: str) -> None:
    more = [{"name": n} for n in ("web_search", "mcp__hub__list_issues", "mcp__a__add", "mcp__b__add")]
    said, it = understood(call(given, '{"command": "ls"}', id="a"), tools=(BASH, READ, *more))
    assert names(said) == [meant]
    assert it.receipts[0].offered == (meant not in ("Bash2", "browser_open", "add"))


@pytest.mark.parametrize("mode", ["live", "whole"])
@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_a_call_of_an_undeclared_tool_is_invalid(client: str, mode: str) -> None:
    said, it = understood(call("invent", '{"a": 1}', id="x"), client=client, mode=mode)
    assert said["tool_calls"][0]["arguments"] == {"a": 1}
    receipt = it.receipts[0]
    assert (receipt.offered, receipt.outcome) == (False, "not_offered")
    assert receipt.problems == ("not offered: there is no tool 'invent'; the tools are: Bash, Read, note",)
    said, it = understood(call("invent", '{"a": 1}', id="x"), client=client, mode=mode, invalid="error")
    assert said["stop"] == "error"
    assert it.failure is not None
    assert "'invent' cannot be run: not offered" in it.failure.message


def test_without_declared_tools_no_call_is_judged() -> None:
    _, it = understood(call("invent", '{"a": 1}', id="x"), tools=())
    assert it.receipts[0].offered
    assert it.receipts[0].problems == ()


def offered(tool: Tool, name: str, namespace: str | None = None) -> bool:
    rule = NameRule(r".+", 64)
    return ToolNames((Tool(name="Bash"), tool), rule).offers(name, namespace)


def test_tools_of_the_provider_count_as_declared() -> None:
    memory = Tool(name="memory", kind="hosted", hosted="memory")
    assert offered(memory, "memory")
    assert not offered(memory, "invent")
    assert offered(Tool(name="computerUse", kind="hosted", hosted="computerUse"), "click_at")
    click = Tool(name="click", namespace="computer")
    assert offered(click, "click", "computer")
    assert offered(click, "new_member", "computer")
    assert not offered(click, "new_member", "browser")
    assert offered(Tool(name="phone_toolset", kind="hosted", hosted="phone_toolset"), "dial", "phone")


def test_a_name_that_fits_two_tools_by_case_is_not_mended() -> None:
    tools = [BASH, {**BASH, "name": "BASH"}]
    assert names(understood(call("bash", '{"command": "ls"}', id="a"), tools=tools)[0]) == ["bash"]


def test_missing_ids_are_generated_and_repeated_ids_made_unique() -> None:
    said, it = understood(
        call("Bash", '{"command": "a"}'),
        call("Read", '{"file_path": "b"}', id="x", index=1),
        call("note", '{"c": 1}', id="x", index=2),
    )
    given = [c["id"] for c in said["tool_calls"]]
    assert len(set(given)) == 3
    assert given[1] == "x"
    assert [r.upstream_id for r in it.receipts] == ["", "x", "x"]


def test_an_illegal_id_comes_back_as_the_upstreams_own() -> None:
    said, _ = understood(call("Bash", '{"command": "a"}', id="functions.Bash:0"))
    assert call_ids.from_client(said["tool_calls"][0]["id"]) == "functions.Bash:0"


def test_a_call_without_a_name_is_a_ghost() -> None:
    said, it = understood(call("Bash", '{"command": "a"}', id="x"), call("", "", index=1))
    assert names(said) == ["Bash"]
    assert [r.dropped for r in it.receipts] == [None, "ghost"]


def piece(arguments: str, index: int = 0) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}


def fragments(id: str, index: int = 0) -> list[dict[str, Any]]:
    return [call("Bash", "", id=id, index=index), piece('{"comma', index), piece('nd": "a"}', index)]


A = '{"command": "a"}'
GHOSTS = {
    "the same id at another index": [call("Bash", A, id="x"), call("Bash", f" {A}", id="x", index=1)],
    "the same id and index": [call("Bash", A, id="x"), call("Bash", A, id="x")],
    "the same index, the id left out": [call("Bash", A, id="x"), call("Bash", A)],
    "no ids, but indexes": [call("Bash", A), call("Read", "{}", index=1), call("Bash", A)],
    "all fragments again": [*fragments("x"), *fragments("x")],
    "all fragments again, the id left out": [*fragments("x"), *fragments("")],
    "as text and as a call": [
        {"content": '<tool_call>{"name": "Bash", "arguments": {"command": "a"}}</tool_call>'},
        call("Bash", A, id="x"),
    ],
}


@pytest.mark.parametrize("mode", ["live", "whole"])
@pytest.mark.parametrize("deltas", GHOSTS.values(), ids=GHOSTS)
def test_a_repeated_call_is_delivered_once(deltas: list[dict[str, Any]], mode: str) -> None:
    said, it = understood(*deltas, mode=mode)
    assert names(said).count("Bash") == 1
    assert [r.dropped for r in it.receipts].count("duplicate") == 1


TWICE = {
    "two ids": [call("Bash", A, id="x"), call("Bash", A, id="y", index=1)],
    "two ids at one index": [call("Bash", A, id="x"), call("Bash", A, id="y")],
    "no ids": [call("Bash", A), call("Bash", A, index=1)],
    "no ids at one index": [call("Bash", A), call("Bash", A)],
    "no ids at one index, in fragments": [*fragments(""), *fragments("")],
    "two ids, in fragments": [*fragments("x"), *fragments("y", 1)],
    "one list": [{"tool_calls": [{"function": {"name": "Bash", "arguments": A}}] * 2}],
    "as text": [{"content": '<tool_call>{"name": "Bash", "arguments": {"command": "a"}}</tool_call>' * 2}],
}


@pytest.mark.parametrize("mode", ["live", "whole"])
@pytest.mark.parametrize("deltas", TWICE.values(), ids=TWICE)
def test_two_equal_calls_are_two_calls(deltas: list[dict[str, Any]], mode: str) -> None:
    said, it = understood(*deltas, mode=mode)
    assert [c["arguments"] for c in said["tool_calls"]] == [{"command": "a"}] * 2
    assert [r.dropped for r in it.receipts] == [None, None]


def test_equal_calls_of_a_whole_body_are_all_delivered() -> None:
    each = {"type": "function", "function": {"name": "note", "arguments": ""}}
    choice = {"index": 0, "message": {"tool_calls": [each, each, each]}, "finish_reason": "tool_calls"}
    it = exchange("openai-chat", "anthropic", (ANY,))
    data = run(it, [msgspec.json.encode({"id": "c", "object": "chat.completion", "choices": [choice]})])
    assert names(neutral.reduce("anthropic", data, stream=True)) == ["note"] * 3


@pytest.mark.parametrize("mode", ["live", "whole"])
@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_calls_keep_the_order_in_which_they_began(client: str, mode: str) -> None:
    bare = call("note", "", id="x")
    named_late = {"tool_calls": [{"index": 1, "id": "y", "function": {"arguments": ""}}]}
    name = {"tool_calls": [{"index": 1, "function": {"name": "Bash", "arguments": A}}]}
    read = call("Read", '{"file_path": "b"}', id="z", index=2)
    said, _ = understood(bare, named_late, read, name, client=client, mode=mode)
    assert names(said) == ["note", "Bash", "Read"]


@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_in_a_cut_answer_an_earlier_call_without_arguments_is_complete(client: str) -> None:
    said, _ = understood(
        call("note", "", id="x"), call("Bash", '{"comm', id="y", index=1), finish="length", client=client
    )
    assert said["stop"] == "max_tokens"
    assert said["tool_calls"][0]["arguments"] == {}


def test_the_same_tool_with_other_arguments_is_delivered_twice() -> None:
    said, _ = understood(
        call("Bash", '{"command": "make a"}', id="x"), call("Bash", '{"command": "make b"}', id="y", index=1)
    )
    assert [c["arguments"]["command"] for c in said["tool_calls"]] == ["make a", "make b"]


def test_true_and_one_are_not_the_same_argument() -> None:
    said, _ = understood(call("note", '{"v": 1}', id="x"), call("note", '{"v": true}', id="y", index=1))
    assert len(said["tool_calls"]) == 2


@pytest.mark.parametrize("mode", ["live", "whole"])
@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_a_plausible_cut_call_is_never_complete(client: str, mode: str) -> None:
    said, it = understood(
        call("Bash", '{"command": "rm -rf ./bui', id="x"), finish=None, client=client, mode=mode
    )
    assert said["stop"] == "error"
    assert all(isinstance(c["arguments"], str) for c in said["tool_calls"])
    assert it.failure is not None


@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_an_unreadable_call_is_an_error_even_if_the_upstream_reports_success(client: str) -> None:
    said, it = understood(call("Bash", '{"command": "ls', id="x"), client=client)
    assert said["stop"] == "error"
    assert it.receipts[-1].complete is False


@pytest.mark.parametrize("client", ["anthropic", "openai-chat", "openai-responses", "gemini"])
def test_a_call_cut_before_its_first_argument_is_not_delivered(client: str) -> None:
    said, _ = understood(call("Bash", "", id="x"), finish="length", client=client)
    assert said["tool_calls"] == []
    assert said["stop"] == "max_tokens"


def test_a_valid_call_with_an_odd_key_is_unchanged() -> None:
    said, it = understood(call("note", '{"prompt": 1, "zz": {"path": 2}}', id="x"))
    assert said["tool_calls"][0]["raw"] == '{"prompt": 1, "zz": {"path": 2}}'
    assert it.receipts[0].fixes == ()


def test_a_value_that_looks_like_a_key_is_untouched() -> None:
    raw = '{"command": "echo \\"prompt\\": 1"}'
    assert understood(call("Bash", raw, id="x"))[0]["tool_calls"][0]["raw"] == raw


def test_a_fenced_example_is_text() -> None:
    text = '```\n<tool_call>{"name": "Bash", "arguments": {"command": "ls"}}</tool_call>\n```'
    said, _ = understood({"content": text}, finish="stop")
    assert said["text"] == text
    assert said["tool_calls"] == []


def test_reasoning_that_talks_of_calls_stays_reasoning_when_an_answer_follows() -> None:
    thought = 'So <tool_call>{"name": "Bash", "arguments": {"command": "ls"}}</tool_call> it is.'
    said, _ = understood({"reasoning_content": thought}, {"content": "No need."}, finish="stop")
    assert (said["thinking"], said["text"], said["tool_calls"]) == (thought, "No need.", [])


def test_the_stop_reason_matches_the_calls() -> None:
    assert understood(call("Bash", '{"command": "a"}', id="x"), finish="stop")[0]["stop"] == "tool_use"
    assert understood({"content": "hi"}, finish="tool_calls")[0]["stop"] == "end_turn"
    assert understood(call("Bash", '{"command": "a"}', id="x"), finish="length")[0]["stop"] == "max_tokens"


def test_receipts_have_received_and_sent_arguments() -> None:
    _, it = understood(call("bash", '{"prompt": "ls", "timeout": "3"}', id="functions.bash:0"))
    receipt = it.receipts[0]
    assert receipt.upstream_name == "bash"
    assert receipt.name == "Bash"
    assert receipt.upstream_id == "functions.bash:0"
    assert receipt.received == '{"prompt": "ls", "timeout": "3"}'
    assert msgspec.json.decode(receipt.sent) == {"command": "ls", "timeout": 3}
    assert {fix.rule for fix in receipt.fixes} == {"tool-alias", "number-as-text"}
    assert all(fix.reason for fix in receipt.fixes)


def test_a_rule_that_is_off_does_not_fire() -> None:
    off = frozenset({"number-as-text"})
    said, it = understood(call("Bash", '{"command": "ls", "timeout": "3"}', id="x"), rules_off=off)
    assert said["tool_calls"][0]["arguments"]["timeout"] == "3"
    assert it.receipts[0].problems


WRITTEN = '<tool_call>{"name": "Read", "arguments": {"file_path": "a"}}</tool_call>'
SWITCHES = {
    "tool-name": [call("bash", '{"command": "ls"}', id="x")],
    "repeated-call": [
        call("Bash", '{"command": "a"}', id="x"),
        call("Bash", '{"command": "a"}', id="x", index=1),
    ],
    "call-in-text": [{"content": WRITTEN}],
    "call-in-reasoning": [{"reasoning_content": WRITTEN}],
    "mark-before-call": [{"content": "<tool_call>"}, call("Bash", '{"command": "a"}', id="x")],
    "think-tags": [{"content": "<think>hm</think>yes"}],
}


@pytest.mark.parametrize("rule", ANSWER_RULES)
def test_every_rule_about_answers_can_be_switched_off(rule: str) -> None:
    deltas = SWITCHES[rule]
    on, _ = understood(*deltas, finish="stop")
    off, _ = understood(*deltas, finish="stop", rules_off=frozenset({rule}))
    assert (on["text"], on["thinking"], names(on)) != (off["text"], off["thinking"], names(off))


def test_receipts_state_the_held_characters_and_time() -> None:
    ticks = iter(range(100))
    pieces = [
        call("Bash", "", id="x"),
        *(
            {"tool_calls": [{"index": 0, "function": {"arguments": p}}]}
            for p in ('{"com', 'mand": "ls"', "}")
        ),
    ]
    _, it = understood(*pieces, clock=lambda: float(next(ticks)))
    receipt = it.receipts[0]
    assert receipt.held_characters == len('{"com')
    assert receipt.held_seconds > 0


def test_end_tokens_are_dropped_with_a_notice() -> None:
    said, it = understood({"content": "Done.<|im_end|>"}, finish="stop")
    assert said["text"] == "Done."
    assert [notice.message.partition(" ")[0] for notice in it.notices] == ["<|im_end|>"]
    said, it = understood({"reasoning_content": "Done.</s>"}, {"content": "So."}, finish="stop")
    assert said["thinking"] == "Done."
    assert [notice.rule for notice in it.notices] == ["end-tokens-dropped"]
    assert understood({"content": "Done.<|im_end|> So."}, finish="stop")[1].notices == ()
