"""Neutral requests that every protocol can carry, for properties over all of them."""

import json
from typing import Any

from hypothesis import strategies as st

from dragoman.model.messages import (
    Format,
    Media,
    Message,
    Part,
    Reasoning,
    Request,
    Settings,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolResult,
)

from .agent_requests import PNG

# Non-empty text: blank texts are dropped and trimmed by rule.
WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30).map(
    lambda text: text.strip() or "x"
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(-1e9, 1e9) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
ARGUMENTS = st.dictionaries(WORDS, VALUES, max_size=3)
NAMES = st.sampled_from(["read", "Bash", "mcp__x__y", "a.b", "z" * 70, "wörter"])
IMAGES = st.sampled_from(["image/png", "image/jpeg", "image/webp"]).map(
    lambda type: Media(kind="image", media_type=type, data=PNG)
)
SCHEMAS = st.sampled_from(
    [
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"type": "object", "properties": {"n": {"type": "integer", "multipleOf": 2}}},
        {"type": "object"},
    ]
)


@st.composite
def tools(draw: st.DrawFn) -> tuple[Tool, ...]:
    names = draw(st.lists(st.tuples(NAMES, st.sampled_from([None, None, "ns"])), max_size=4, unique=True))
    return tuple(
        Tool(
            name=name,
            namespace=namespace,
            description=draw(st.none() | WORDS),
            kind=(kind := draw(st.sampled_from(["function", "function", "custom"]))),
            parameters=draw(SCHEMAS) if kind == "function" else None,
        )
        for name, namespace in names
    )


@st.composite
def _results(draw: st.DrawFn, calls: list[ToolCall]) -> list[Part]:
    results: list[Part] = []
    for call in draw(st.permutations(calls)):
        parts: list[Text | Media] = [Text(draw(WORDS))]
        if draw(st.booleans()):
            parts.append(draw(IMAGES))
        failed = draw(st.booleans())
        results.append(ToolResult(call_id=call.id, parts=tuple(parts), is_error=failed, kind=call.kind))
    return results


@st.composite
def _turns(draw: st.DrawFn, offered: tuple[Tool, ...]) -> list[Message]:
    messages = [Message("user", (Text(draw(WORDS)), *draw(st.lists(IMAGES, max_size=1))))]
    for turn in range(draw(st.integers(0, 3))):
        if draw(st.booleans()):
            role: Any = draw(st.sampled_from(["system", "developer"]))
            messages.append(Message(role, (Text(draw(WORDS)),)))
        said: list[Part] = [Text(words) for words in draw(st.lists(WORDS, min_size=1, max_size=2))]
        called = draw(st.lists(st.sampled_from(offered), max_size=3)) if offered else []
        calls = [_call(draw, tool, f"call_{turn}_{number}") for number, tool in enumerate(called)]
        messages.append(Message("assistant", (*said, *calls)))
        messages.append(Message("user", (*draw(_results(calls)), Text(draw(WORDS)))))
    return messages


def _call(draw: st.DrawFn, tool: Tool, id: str) -> ToolCall:
    custom = tool.kind == "custom"
    arguments = draw(WORDS) if custom else json.dumps(draw(ARGUMENTS))
    return ToolCall(
        id=id,
        name=tool.name,
        namespace=tool.namespace,
        arguments=arguments,
        kind="custom" if custom else "function",
    )


def _choices(offered: tuple[Tool, ...]) -> st.SearchStrategy[ToolChoice | None]:
    simple = [None, ToolChoice("auto"), ToolChoice("none")]
    if not offered:
        return st.sampled_from(simple[:2])
    named = [ToolChoice("named", tool.name, tool.namespace) for tool in offered]
    return st.sampled_from([*simple, ToolChoice("required"), *named])


@st.composite
def requests(draw: st.DrawFn) -> Request:
    offered = draw(tools())
    system = [Message("system", (Text(words),)) for words in draw(st.lists(WORDS, max_size=2))]
    efforts: Any = ["none", "low", "medium", "high"]
    settings = Settings(
        max_tokens=draw(st.none() | st.integers(16, 60_000)),
        temperature=draw(st.none() | st.floats(0, 1)),
        stop=draw(st.lists(WORDS, max_size=4, unique=True).map(tuple)),
        reasoning=draw(st.none() | st.builds(Reasoning, effort=st.sampled_from(efforts))),
        format=draw(st.none() | st.just(Format("json")) | st.builds(Format, st.just("schema"), SCHEMAS)),
        tool_choice=draw(_choices(offered)),
        parallel_tool_calls=draw(st.sampled_from([None, True, False])),
    )
    messages = (*system, *draw(_turns(offered)))
    return Request(model="m", messages=messages, tools=offered, settings=settings, stream=draw(st.booleans()))
