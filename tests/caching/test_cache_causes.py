"""Why a cache missed: made-up pairs of requests, and the sentence that each must get."""

import copy
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from dragoman.observe.caching import CacheTurn, PromptFingerprint, explain, explain_all, prompt_fingerprint
from dragoman.protocols.registry import PROTOCOLS, upstream_protocol

MARK = {"cache_control": {"type": "ephemeral"}}
Body = dict[str, Any]


def tool(name: str, about: str = "Does it.") -> Body:
    return {"name": name, "description": about, "input_schema": {"type": "object"}}


def said(role: str, text: str, **more: Any) -> Body:
    return {"role": role, "content": [{"type": "text", "text": text, **more}]}


def first() -> Body:
    return {
        "model": "opus",
        "max_tokens": 100,
        "tools": [tool("Bash"), tool("Read"), tool("Write")],
        "system": [
            {"type": "text", "text": "You are an agent."},
            {"type": "text", "text": "Today is 2026-05-01. Session 7f3a9c. Be brief.", **MARK},
        ],
        "messages": [said("user", "Mend the test. It is 2026-05-01.", **MARK)],
    }


def follow(body: Body) -> Body:
    """The next turn: an answer and a result, and the mark at the new last message."""
    body = copy.deepcopy(body)
    for message in body["messages"]:
        message["content"][-1].pop("cache_control", None)
    n = len(body["messages"])
    body["messages"] += [said("assistant", f"Answer {'x' * n}"), said("user", f"Result {'y' * n}", **MARK)]
    return body


def printed(body: Body, protocol: str = "anthropic") -> PromptFingerprint:
    wire = upstream_protocol(protocol)
    made = prompt_fingerprint(json.dumps(body).encode(), body.get("model", "m"), wire.fields, wire.prompt)
    assert made is not None
    return made


def turn(body: Body, at: float = 0.0, protocol: str = "anthropic", **more: Any) -> CacheTurn:
    known = {
        "id": f"t{at}",
        "seconds": 5.0,
        "first_event": 1.0,
        "target": "up/opus",
        "input": 9000,
        "cached": 0,
    }
    return CacheTurn(at=at, prompt=printed(body, protocol), **{**known, **more})


Change = Callable[[Body], object]


def put(path: list[Any], value: Any) -> Change:
    def change(body: Body) -> None:
        at: Any = body
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value

    return change


CAUSES: list[tuple[str, Change, str, str]] = [
    ("reordered", lambda b: b["tools"].insert(0, b["tools"].pop(1)), "tools-reordered",
     "The tool list was reordered: Read moved."),
    ("shuffled", lambda b: b["tools"].reverse(), "tools-reordered",
     "The tool list was reordered: Write and others moved."),
    ("added", lambda b: b["tools"].append(tool("Grep")), "tool-added", "New in the tool list: Grep."),
    ("removed", lambda b: b["tools"].pop(0), "tool-removed", "No longer in the tool list: Bash."),
    ("described anew", put(["tools", 1], tool("Read", "Reads.")), "tool-changed",
     "The definition of a tool changed: Read."),
    ("no tools", lambda b: b.pop("tools"), "tools-removed", "The request has no tools any more."),
    ("date", put(["system", 1, "text"], "Today is 2026-05-02. Session 7f3a9c. Be brief."), "system-date",
     "A date or time in block 2 of 2 of the system prompt changed."),
    ("id", put(["system", 1, "text"], "Today is 2026-05-01. Session 11bd02. Be brief."), "system-id",
     "A number or an id in block 2 of 2 of the system prompt changed."),
    ("prompt", put(["system", 0, "text"], "You are a poet."), "system",
     "Block 1 of 2 of the system prompt changed (19 → 17 bytes)."),
    ("blocks swapped", lambda b: b["system"].reverse(), "system-reordered",
     "The blocks of the system prompt were reordered, from block 1 on."),
    ("longer prompt", lambda b: b["system"].append({"type": "text", "text": "More."}), "system-length",
     "The system prompt has 3 blocks instead of 2: it is longer."),
    ("no prompt", lambda b: b.pop("system"), "system", "The request has no system prompt any more."),
    ("model", put(["model"], "haiku"), "model", "The model changed: opus → haiku."),
    ("thinking", put(["thinking"], {"type": "adaptive"}), "reasoning",
     'The thinking setting changed: not set → {"type": "adaptive"}.'),
    ("choice", put(["tool_choice"], {"type": "any"}), "tool_choice",
     'The tool choice changed: not set → {"type": "any"}.'),
    ("format", put(["output_format"], {"type": "json_schema", "schema": {"type": "object", "title": "T"}}),
     "format", "The output format changed."),
    ("speed", put(["speed"], "fast"), "service_tier", 'The service tier or speed changed: not set → "fast".'),
    ("date in a message", put(["messages", 0, "content", 0, "text"], "Mend the test. It is 2026-05-02."),
     "message-date", "A date or time in message 1 (user) changed."),
    ("edited", put(["messages", 2, "content", 0, "text"], "Another result"), "message",
     "Message 3 of 5 of the turn before (user) changed"),
    ("inserted", lambda b: b["messages"].insert(1, said("user", "By the way")), "messages-inserted",
     "Something was inserted before message 2 of the turn before."),
    ("left out", lambda b: b["messages"].pop(1), "messages-removed",
     "Message 2 of the turn before was left out."),
    ("compacted", lambda b: b["messages"].__setitem__(slice(1, None), [said("user", "A summary")]),
     "messages-replaced", "The conversation was compacted or rewound at message 2: 5 messages became 2."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "cause", "sentence"), [one[1:] for one in CAUSES], ids=[one[0] for one in CAUSES]
)
def test_a_change_of_the_prompt(change: Change, cause: str, sentence: str) -> None:
    before = follow(follow(first()))
    after = follow(before)
    change(after)
    found = explain(turn(before), turn(after, 60))
    assert (found.cause, found.hit) == (cause, False)
    assert found.sentence.startswith(sentence)
    assert found.changes  # the page lists it, too
    unchanged = explain(turn(before), turn(follow(before), 60))
    assert found.same_bytes < unchanged.same_bytes or cause in (
        "model",
        "reasoning",
        "tool_choice",
        "format",
        "service_tier",
    )


Times = dict[str, Any]
LATER: list[tuple[str, Times, Times, str, str]] = [
    ("idle", {}, {"at": 400.0}, "idle", "Idle for 7 min: longer than the cache is kept (5 min)."),
    ("target", {}, {"target": "other/opus"}, "target", "Another target was chosen: up/opus → other/opus."),
    ("key", {"credential": "#a"}, {"credential": "#b"}, "key", "Another key of the upstream was used"),
    ("failed", {"failed": True}, {}, "failed-before", "The turn before failed"),
    ("early", {"first_event": 70.0, "seconds": 90.0}, {}, "too-early", "The request was sent before"),
    ("short", {"input": 500}, {"input": 700}, "short", "The prompt was shorter than 1,024 tokens"),
    ("unexplained", {}, {}, "upstream", "The prompt begins as it did before, and the target is the same"),
    ("unknown", {}, {"cached": None, "input": None}, "not-reported",
     "The prompt begins as it did before. The upstream did"),
    ("hit", {}, {"cached": 8800, "input": 9500}, "same", "The prompt begins as it did before."),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "cause", "sentence"), [one[1:] for one in LATER], ids=[one[0] for one in LATER]
)
def test_the_same_prompt(old: Times, new: Times, cause: str, sentence: str) -> None:
    before, after = first(), follow(first())
    found = explain(turn(before, **old), turn(after, **{"at": 60.0, **new}))
    assert found.cause == cause
    assert found.sentence.startswith(sentence)
    assert found.changes == ("2 new messages",)
    assert found.hit is {"hit": True, "not-reported": None, "same": True}.get(cause, False)


def test_the_upstream_is_only_blamed_if_nothing_else_is_found() -> None:
    before, after = first(), follow(first())
    idle = explain(turn(before), turn(after, 400))
    assert (idle.cause, idle.also) == ("idle", ())
    part = explain(turn(before), turn(after, 60, cached=4000, input=9300))
    assert (part.cause, part.hit) == ("upstream", False)
    assert part.sentence.endswith("the upstream used only a part of its cache.")


def test_a_system_prompt_is_the_same_as_a_string_and_as_a_block() -> None:
    before = first() | {"system": "You are an agent."}
    after = follow(before) | {"system": [{"type": "text", "text": "You are an agent.", **MARK}]}
    found = explain(turn(before), turn(after, 60, cached=8800, input=9500))
    assert (found.cause, found.changes) == ("same", ("2 new messages",))


def test_a_stored_response_is_not_compared_with_its_first_message() -> None:
    body = {"instructions": "Be.", "input": [{"role": "user", "content": "Hi"}]}
    more = {"previous_response_id": "resp_1", "input": [{"role": "user", "content": "And now?"}]}
    turns = [turn(body, 1, "openai-responses"), turn(more, 60, "openai-responses")]
    assert [found.cause for found in explain_all(turns)] == ["first", "stored"]


def test_marks() -> None:
    before, after = follow(first()), follow(follow(first()))
    bare = json.loads(json.dumps(after).replace(', "cache_control": {"type": "ephemeral"}', ""))
    assert printed(bare).marks == ()
    assert explain(turn(before), turn(bare, 60)).cause == "mark-removed"
    assert explain(turn(bare), turn(follow(after), 60)).cause == "mark-missing"
    # A mark that moves on is the rule. One that moves back, or far, is a cause.
    assert explain(turn(before), turn(after, 60)).cause == "upstream"
    back = copy.deepcopy(after)
    del back["messages"][-1]["content"][0]["cache_control"]
    found = explain(turn(before), turn(back, 60))
    assert (found.cause, found.sentence) == (
        "mark-moved", "The last cache mark moved back, from message 3 to the system prompt."
    )  # fmt: skip
    far = before
    for _ in range(11):
        far = follow(far)
    assert explain(turn(before), turn(far, 60)).sentence == (
        "The last cache mark moved from message 3 to message 25: "
        "the upstream searches only 20 blocks before a mark."
    )


def test_how_long_a_cache_without_marks_is_kept_is_not_claimed() -> None:
    before: Body = {"messages": [{"role": "user", "content": "Hi"}]}
    after = copy.deepcopy(before)
    after["messages"] += [{"role": "assistant", "content": "Ho"}, {"role": "user", "content": "On"}]
    found = explain(turn(before, protocol="openai-chat"), turn(after, 400, "openai-chat"))
    assert found.sentence == "Idle for 7 min: longer than some upstreams keep a cache (5 min)."


def test_an_hour_is_kept_for_an_hour() -> None:
    hour = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    before = first() | {"system": [{"type": "text", "text": "You.", **hour}]}
    assert explain(turn(before), turn(follow(before), 1800)).cause == "upstream"
    assert explain(turn(before), turn(follow(before), 7200)).sentence.endswith("(60 min).")


def test_neither_marks_nor_the_form_of_a_text_change_a_fingerprint() -> None:
    plain = printed({"messages": [{"role": "user", "content": "Hi"}]})
    forms: list[Body] = [
        {"content": [{"type": "text", "text": "Hi"}], "role": "user"},
        {"role": "user", "content": [{"type": "text", "text": "Hi", **MARK}]},
        {"role": "user", "content": [{**MARK, "type": "text", "text": "Hi"}]},
        {"role": "user", "content": [{"type": "text", "cache_control": None, "text": "Hi"}]},
    ]
    for form in forms:
        assert printed({"messages": [form]}).messages == plain.messages
    # Claude Code's system messages have further members, and lose their mark after the first turn.
    more = {"role": "system", "output_config": {"effort": "low"}}
    marked = printed({"messages": [more | {"content": [{"type": "text", "text": "Be.", **MARK}]}]})
    assert marked.messages == printed({"messages": [more | {"content": "Be."}]}).messages
    result = {"role": "tool", "tool_call_id": "call_1"}
    marked = printed(
        {"messages": [result | {"content": [{"type": "text", "text": "18", **MARK}]}]}, "openai-chat"
    )
    assert marked.messages == printed({"messages": [result | {"content": "18"}]}, "openai-chat").messages
    quoted = printed(
        {"messages": [{"role": "user", "content": 'Write "cache_control": {"type": "ephemeral"}'}]}
    )
    assert quoted.marks == ()
    assert quoted.messages != plain.messages
    points = {
        "messages": [{"role": "user", "content": [{"text": "Hi"}, {"cachePoint": {"type": "default"}}]}]
    }
    pointless = {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}
    marked = printed(points, "bedrock-converse")
    assert marked.marks == ("m0",)
    assert marked.messages == printed(pointless, "bedrock-converse").messages


@pytest.mark.parametrize("ttl", [None, "12h"])
def test_marks_of_openai_do_not_change_a_fingerprint(ttl: str | None) -> None:
    mark = {"prompt_cache_breakpoint": {"mode": "explicit"} | ({"ttl": ttl} if ttl else {})}
    said = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]
    marked = copy.deepcopy(said)
    marked[0]["content"][0] |= mark  # type: ignore[index]
    found = printed({"input": marked}, "openai-responses")
    assert found.messages == printed({"input": said}, "openai-responses").messages
    assert found.marks == ("m0",)
    assert found.ttl == (12 * 3600 if ttl else 1800)
    spoken = {"role": "user", "content": [{"type": "text", "text": "Hi", **mark}]}
    plain = {"role": "user", "content": "Hi"}
    assert (
        printed({"messages": [spoken]}, "openai-chat").messages
        == printed({"messages": [plain]}, "openai-chat").messages
    )


CHAT = {"messages": [{"role": "system", "content": "It is 2026-05-01."}, {"role": "user", "content": "Hi"}]}
FUNCTION = {"name": "Bash", "description": "Run."}
OTHERS: dict[str, tuple[Body, Change, str, str]] = {
    "openai-chat": (
        CHAT | {"tools": [{"type": "function", "function": FUNCTION}]},
        put(["messages", 0, "content"], "It is 2026-05-02."), "system-date",
        "A date or time in the system prompt (message 1) changed.",
    ),
    "openai-responses": (
        {"instructions": "Be.", "input": [{"role": "user", "content": "Hi"}], "prompt_cache_key": "a"},
        put(["prompt_cache_key"], "b"), "cache_key", 'The cache key changed: "a" → "b".',
    ),
    "gemini": (
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
         "tools": [{"functionDeclarations": [FUNCTION, {"name": "Read"}]}]},
        lambda b: b["tools"][0]["functionDeclarations"].pop(), "tool-removed",
        "No longer in the tool list: Read.",
    ),
    "bedrock-converse": (
        {"messages": [{"role": "user", "content": [{"text": "Hi"}]}],
         "toolConfig": {"tools": [{"toolSpec": FUNCTION}], "toolChoice": {"auto": {}}}},
        put(["toolConfig", "toolChoice"], {"any": {}}), "tool_choice",
        'The tool choice changed: {"auto": {}} → {"any": {}}.',
    ),
}  # fmt: skip


@pytest.mark.parametrize("protocol", OTHERS)
def test_every_protocol(protocol: str) -> None:
    body, change, cause, sentence = OTHERS[protocol]
    other = copy.deepcopy(body)
    change(other)
    found = explain(turn(body, protocol=protocol), turn(other, 9, protocol))
    assert (found.cause, found.sentence) == (cause, sentence)


def test_a_turn_is_compared_within_its_own_conversation() -> None:
    main, title = first(), {"model": "haiku", "messages": [{"role": "user", "content": "A title for this"}]}
    sub = first() | {"messages": [said("user", "Search the code")]}
    bodies = [title, main, sub, follow(main), follow(sub), follow(follow(main))]
    found = explain_all([turn(body, n * 10.0) for n, body in enumerate(bodies)])
    assert [one.compared for one in found] == [None, None, None, "t10.0", "t20.0", "t30.0"]
    assert [one.cause for one in found] == ["first"] * 3 + ["upstream"] * 3


@pytest.mark.parametrize(("lines", "cause"), [(10, "system-date"), (1000, "system")])
def test_dates_are_noticed_in_texts_of_a_limited_size(lines: int, cause: str) -> None:
    before, after = (
        first()
        | {"system": "Be brief, and say what is, not what may be.\n" * lines + f"It is 2026-05-0{day}.\nEnd."}
        for day in (1, 2)
    )
    assert explain(turn(before), turn(follow(after), 9)).cause == cause


def test_a_fingerprint_stays_small_and_still_finds_the_place() -> None:
    body = {"messages": [said("user" if n % 2 else "assistant", f"Message {n} " * 30) for n in range(1000)]}
    more = copy.deepcopy(body)
    more["messages"] += [said("user", "The newest")]
    before, after = printed(body), printed(more)
    assert len(msgspec.json.encode(after)) < 8_000
    assert explain(turn(body), turn(more, 9, cached=8999)).cause == "same"
    more["messages"][500]["content"][0]["text"] = "Edited"
    found = explain(turn(body), turn(more, 9))
    assert (found.cause, before.per, after.per) == ("message", 8, 8)
    assert "one of the messages 497 to 504" in found.sentence.lower()
    short = {"messages": body["messages"][:150]}
    assert printed(short).per == 1
    assert explain(turn(short), turn(body, 9)).cause == "upstream"  # prints of different coarseness


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"messages": [1, null, "x"], "tools": 7}', b'{"tools":[{"name":5}]}']
)
def test_any_body_is_survived(body: bytes) -> None:
    for name in PROTOCOLS:
        wire = upstream_protocol(name)
        prompt_fingerprint(body, "m", wire.fields, wire.prompt)
