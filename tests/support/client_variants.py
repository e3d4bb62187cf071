"""Differences between clients, each applied alone to a plain conversation.

Each was seen on the wire, or is what an SDK does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from bench.talks import Obj, text

Habit = Callable[[Obj], object]
"""Changes a request."""
MARK = {"cache_control": {"type": "ephemeral"}}
_IMAGE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=" * 50},
}
_REMINDER = text("<system-reminder>\nNothing is left on the list.\n</system-reminder>")
_SEAL = "c2lnbmVk" * 40
_SEARCH = (
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "dragoman"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
)


_encode = msgspec.json.encode


def _nothing(_: Obj) -> None:
    pass


def _parts(asked: Obj, type: str) -> Iterator[Obj]:
    for message in asked["messages"]:
        yield from (part for part in message["content"] if part["type"] == type)


def _unmarked(part: Obj) -> Obj:
    """Remove the cache mark of a part."""
    return {name: part.pop(name) for name in MARK if name in part}


def _every(type: str, **members: Any) -> Habit:
    """Every part of this type also has these members."""

    def habit(asked: Obj) -> None:
        for part in _parts(asked, type):
            part |= members

    return habit


def _before(role: str, *parts: Obj) -> Habit:
    """Every message of a role begins with these parts."""

    def habit(asked: Obj) -> None:
        for message in asked["messages"]:
            if message["role"] == role:
                message["content"][:0] = [dict(part) for part in parts]

    return habit


def _behind(role: str, *parts: Obj) -> Habit:
    """Every message of a role ends with these parts. The last one takes over the cache mark."""

    def habit(asked: Obj) -> None:
        for message in asked["messages"]:
            if message["role"] == role:
                last = message["content"][-1]
                message["content"] += [dict(part) for part in parts]
                message["content"][-1] |= _unmarked(last)

    return habit


def _beside(**members: Any) -> Habit:
    """The request also has these members."""
    return lambda asked: asked.update(members)


def _calls(more: int) -> Habit:
    """Every turn has `more` additional calls and results."""

    def habit(asked: Obj) -> None:
        for message in asked["messages"][1:]:
            last = message["content"][-1]
            marked = _unmarked(last)
            for number in range(more):
                if message["role"] == "assistant":
                    again = {"id": f"{last['id']}_{number}", "input": {**last["input"], "number": number}}
                else:
                    again = {"tool_use_id": f"{last['tool_use_id']}_{number}"}
                message["content"].append({**last, **again})
            message["content"][-1] |= marked

    return habit


def _results(content: Callable[[Obj], Any]) -> Habit:
    """Results have another form."""

    def habit(asked: Obj) -> None:
        for part in _parts(asked, "tool_result"):
            part["content"] = content(part)

    return habit


def _apart(role: str) -> Habit:
    """Every part of a role's messages is a separate message."""

    def habit(asked: Obj) -> None:
        messages: list[Obj] = []
        for message in asked["messages"]:
            alone = message["role"] == role
            contents = [[part] for part in message["content"]] if alone else [message["content"]]
            messages += [{**message, "content": content} for content in contents]
        asked["messages"] = messages

    return habit


def _results_apart(asked: Obj) -> None:
    """Two calls per turn, with each result in a separate message."""
    _calls(1)(asked)
    _apart("user")(asked)


def _results_swapped(asked: Obj) -> None:
    """Two calls per turn, with the results in another order."""
    _calls(1)(asked)
    for message in asked["messages"][2::2]:
        last, first = message["content"]
        message["content"] = [first, last]
        last |= _unmarked(first)


def _marked(*where: int) -> Habit:
    """Cache marks on these messages."""

    def habit(asked: Obj) -> None:
        del asked["messages"][-1]["content"][-1]["cache_control"]
        for number in where:
            asked["messages"][number]["content"][-1] |= MARK

    return habit


def _mark_within(asked: Obj) -> None:
    """The cache mark is on the text within the last result."""
    last = asked["messages"][-1]["content"][-1]
    last["content"][-1]["cache_control"] = last.pop("cache_control")


def _said_as_system(asked: Obj) -> None:
    asked["messages"].insert(1, {"role": "system", "content": "Be brief."})


def _short_strings(asked: Obj) -> None:
    """Text before the first call is a string."""
    asked["messages"][1:1] = [{"role": "assistant", "content": "Yes?"}, {"role": "user", "content": "Begin."}]


def _renamed(prefix: str) -> Habit:
    """Names that not every upstream accepts."""

    def habit(asked: Obj) -> None:
        for part in (*asked["tools"], *_parts(asked, "tool_use")):
            part["name"] = prefix + part["name"]

    return habit


def _long_ids(asked: Obj) -> None:
    for part in _parts(asked, "tool_use"):
        part["id"] += "_" * 60
    for part in _parts(asked, "tool_result"):
        part["tool_use_id"] += "_" * 60


def _prompt_with_time(asked: Obj) -> None:
    """The system prompt differs in every request."""
    asked["system"].append(text(f"It is turn {len(asked['messages'])}."))


def _numbered(asked: Obj) -> None:
    """A setting differs in every request."""
    asked["metadata"] = {"user_id": f"turn {len(asked['messages'])}"}


def _own_tools(asked: Obj) -> None:
    """Tools with extra members, and a tool of the provider."""
    for tool in asked["tools"]:
        tool["eager_input_streaming"] = True
    asked["tools"].append({"type": "web_search_20250305", "name": "web_search", "max_uses": 3})


def _foreign(asked: Obj) -> None:
    for part in _parts(asked, "text"):
        part["text"] += " größe 値 😀"


def _angled(asked: Obj) -> None:
    for part in _parts(asked, "text"):
        part["text"] += " if a < b && c > d"


def _ordered(*names: str) -> Habit:
    """These members come last."""

    def habit(asked: Obj) -> None:
        for name in names:
            asked[name] = asked.pop(name)

    return habit


HABITS: dict[str, Habit] = {
    "thoughts": _before("assistant", {"type": "thinking", "thinking": "So.", "signature": _SEAL}),
    "thoughts without words": _before("assistant", {"type": "thinking", "thinking": "", "signature": _SEAL}),
    "redacted thoughts": _before("assistant", {"type": "redacted_thinking", "data": _SEAL}),
    "citations": _every("text", citations=None),
    "callers": _every("tool_use", caller={"type": "direct"}),
    "no errors": _every("tool_result", is_error=False),
    "errors": _every("tool_result", is_error=True),
    "results as strings": _results(lambda part: part["content"][0]["text"]),
    "results in two parts": _results(lambda part: [*part["content"], text("And so on.")]),
    "empty results": _results(lambda part: ""),
    "no results": _results(lambda part: []),
    "images in results": _results(lambda part: [*part["content"], _IMAGE]),
    "images": _before("user", _IMAGE),
    "reminders behind": _behind("user", _REMINDER),
    "reminders before": _before("user", _REMINDER),
    "words behind calls": _behind("assistant", text("And so on.")),
    "two texts": _before("assistant", text("Well.")),
    "empty texts": _before("assistant", text("")),
    "two calls": _calls(1),
    "five calls": _calls(4),
    "results swapped": _results_swapped,
    "results apart": _results_apart,
    "answers apart": _apart("assistant"),
    "searches": _before("assistant", *_SEARCH),
    "a system message": _said_as_system,
    "strings first": _short_strings,
    "no mark": _marked(),
    "two marks": _marked(-3, -1),
    "mark on the answer": _marked(-2),
    "mark within": _mark_within,
    "long names": _renamed("mcp__" + "a_server_with_a_long_name_" * 2),
    "dotted names": _renamed("a.b/"),
    "long ids": _long_ids,
    "another time": _prompt_with_time,
    "another user": _numbered,
    "own tools": _own_tools,
    "not ASCII": _foreign,
    "escaped as in Go": _angled,
    "tools last": _ordered("tools"),
    "tools and system last": _ordered("system", "tools"),
    "no tools": lambda asked: asked.pop("tools"),
    "settings": _beside(temperature=1, tool_choice={"type": "auto"}, output_config={"effort": "high"}),
}


SPELLINGS: dict[str, Callable[[Obj], bytes]] = {
    "blanks": lambda asked: json.dumps(asked, ensure_ascii=False).encode(),
    "indented": lambda asked: json.dumps(asked, indent=2).encode(),
    "sorted": lambda asked: json.dumps(asked, sort_keys=True, separators=(",", ":")).encode(),
    "escaped as in Go": lambda asked: _encode(asked).replace(b"<", b"\\u003c").replace(b">", b"\\u003e"),
    "escaped as in PHP": lambda asked: _encode(asked).replace(b"/", b"\\/"),
}
NAMES = (*HABITS, *(name for name in SPELLINGS if name not in HABITS))


def spelled(name: str, body: bytes) -> bytes:
    """The request of a client that has a habit."""
    asked = msgspec.json.decode(body)
    HABITS.get(name, _nothing)(asked)
    return SPELLINGS.get(name, _encode)(asked)
