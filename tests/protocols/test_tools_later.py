"""A schema that is not read until somebody asks makes no other request, and nobody asks without need."""

import gc
import json
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import BadRequest
from dragoman.estimates import most_length, prompt_length, prompt_tokens
from dragoman.messages import Request, Tool
from dragoman.protocols import later, recall
from dragoman.protocols.base import Target
from dragoman.protocols.later import Unread, UnreadTool
from dragoman.protocols.memory import MEMORY
from dragoman.protocols.names import ToolNames
from dragoman.protocols.openai_chat.request.shared import NAMES
from dragoman.protocols.pieces import encode
from dragoman.protocols.registry import PROTOCOLS, protocol
from dragoman.tools.callnames import resolve, schema_of

PADDING = "as long as a prompt is, so that it is worth remembering. " * 12
TARGETS = [
    Target(model="m", issuer="one"),
    Target(model="m", issuer="two", chat_compatible=True),
    Target(model="gemini-3-pro", strict=True),
]
TRICKY = 'a "$schema": \\u0024 {"type":"object"} \U0001f600 é \t\n'
DIALECT = "https://json-schema.org/draft/2020-12/schema"

# As Python writes JSON, as JavaScript does, for people, and with every letter of a keyword escaped.
WRITTEN: list[Callable[[Any], bytes]] = [
    lambda body: json.dumps(body).encode(),
    lambda body: json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode(),
    lambda body: json.dumps(body, indent=2).encode(),
    lambda body: json.dumps(body, separators=(",", ":")).replace('"$sch', '"\\u0024sch').encode(),
]

said = st.sampled_from(["", "Reads.", "Grüße", TRICKY])
leaves: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"type": "string", "description": TRICKY},
        {"type": "integer", "maximum": 1e22},
        {},
        True,
        {"const": 1.0},
    ]
)
schemas: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "$schema": st.just(DIALECT),
            "type": st.sampled_from(["object", "string", ["object", "null"]]),
            "properties": st.dictionaries(st.sampled_from(["path", "$schema", "ß"]), inner, max_size=2),
            "required": st.just(["path"]),
            "additionalProperties": st.one_of(st.just(False), inner),
            "anyOf": st.lists(inner, max_size=2),
            "items": inner,
            "exclusiveMinimum": st.just(0),
            "patternProperties": st.dictionaries(st.just("^x"), inner, max_size=1),
        },
    ),
    max_leaves=6,
)
others: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"type": "bash_20250124", "name": "bash"},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    ]
)
wrong: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"name": "Bad", "input_schema": [1]},
        {"name": "", "input_schema": {}},
        {"name": "NoSchema"},
        {"name": "Other", "input_schema": True},
        {"name": "Cached", "input_schema": {}, "cache_control": {"ttl": 5}},
        7,
    ]
)
functions: st.SearchStrategy[Any] = st.builds(
    lambda name, schema, more: {"name": name, "input_schema": schema, **more},
    st.sampled_from(["Read", "Write", "mcp.tool", "x" * 70]),
    schemas.filter(lambda schema: isinstance(schema, dict)),
    st.fixed_dictionaries(
        {},
        optional={
            "description": st.one_of(st.none(), said),
            "cache_control": st.sampled_from([None, {"type": "ephemeral", "ttl": "1h"}]),
            "strict": st.booleans(),
            "type": st.just("custom"),
            "defer_loading": st.booleans(),
            "eager_input_streaming": st.just(True),
        },
    ),
)
tool_lists: st.SearchStrategy[list[Any]] = st.one_of(
    st.lists(functions, max_size=4),
    st.lists(st.one_of(functions, others), max_size=4),
    st.lists(st.one_of(functions, others, wrong), max_size=3),
)


@pytest.fixture(autouse=True)
def own_memory() -> None:
    MEMORY.__init__()


def body(tools: Any, **more: Any) -> dict[str, Any]:
    spoken = [{"role": "user", "content": PADDING}]
    return {"model": "m", "max_tokens": 9, "system": PADDING, "tools": tools, "messages": spoken, **more}


def read_body(data: bytes) -> Request:
    return protocol("anthropic").read_request(data, "/v1/messages")


def compact(tools: Any) -> bytes:
    return WRITTEN[1](body(tools))


def seen(data: bytes, client: str = "anthropic") -> tuple[Request | str, list[Any]]:
    """What is read, or the complaint, and what every upstream is then sent, in its order, and told."""
    try:
        request = protocol(client).read_request(data, "/v1/messages")
    except BadRequest as error:
        return f"{error.path}: {error.message}", []
    targets = [(upstream, target) for upstream in PROTOCOLS for target in TARGETS]
    # The same once more, as if it had been changed on the way: nothing passes as it came then.
    return request, [sent(r, *to) for r in (request, request.changed(stream=True)) for to in targets]


def sent(request: Request, upstream: str, target: Target) -> Any:
    try:
        outgoing = protocol(upstream).write_request(request, target)
    except BadRequest as error:
        return f"{error.path}: {error.message}"
    names = {name: called.tool.name for name, called in outgoing.names.declared().items()}
    return msgspec.json.encode(outgoing.body), outgoing.notices, names


@pytest.mark.parametrize("written", range(len(WRITTEN)))
@given(tools=tool_lists)
def test_read_later_or_at_once_it_is_the_same(written: int, tools: list[Any]) -> None:
    data = WRITTEN[written](body(tools))
    MEMORY.__init__()
    got = seen(data)
    assert seen(data) == got
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recall, "WORTH_IT", len(data) + 1)
        MEMORY.__init__()
        assert seen(data) == got


openai_functions: st.SearchStrategy[Any] = st.builds(
    lambda name, more: {"name": name, **more},
    st.sampled_from(["Read", "Write", "mcp.tool", "", "x" * 70]),
    st.fixed_dictionaries(
        {},
        optional={
            "parameters": st.one_of(st.none(), schemas, schemas, schemas),
            "description": st.one_of(st.none(), said),
            "strict": st.sampled_from([None, True, False]),
            "defer_loading": st.booleans(),
            "later": st.just(1),
        },
    ),
)
in_chat = st.one_of(
    st.builds(lambda function: {"type": "function", "function": function}, openai_functions),
    st.builds(
        lambda function, more: {"type": "function", "function": function, **more},
        openai_functions,
        st.sampled_from([{}, {"cache_control": {"type": "ephemeral"}}, {"later": 1}]),
    ),
    st.sampled_from(
        [{"type": "custom", "custom": {"name": "patch"}}, {"type": "browser_search"}, {"type": 7}, 7]
    ),
)
in_responses = st.one_of(
    st.builds(lambda function: {"type": "function", **function}, openai_functions),
    st.builds(
        lambda function: {"type": "namespace", "name": "files", "tools": [{"type": "function", **function}]},
        openai_functions,
    ),
    st.sampled_from([{"type": "custom", "name": "patch"}, {"type": "web_search"}, {"type": "namespace"}, 7]),
)


@pytest.mark.parametrize(
    ("client", "list_of", "tools"),
    [("openai-chat", "messages", in_chat), ("openai-responses", "input", in_responses)],
)
@given(data=st.data())
def test_of_openai_clients_it_is_the_same_too(
    client: str, list_of: str, tools: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    offered = data.draw(st.lists(tools, min_size=1, max_size=4))
    spoken = [{"role": "user", "content": PADDING}]
    written = data.draw(st.sampled_from(WRITTEN))({"model": "m", list_of: spoken, "tools": offered})
    MEMORY.__init__()
    got = seen(written, client)
    assert seen(written, client) == got
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recall, "WORTH_IT", len(written) + 1)
        MEMORY.__init__()
        assert seen(written, client) == got


@pytest.mark.parametrize(
    ("client", "list_of", "tool"),
    [
        ("openai-chat", "messages", lambda function: {"type": "function", "function": function}),
        ("openai-responses", "input", lambda function: {"type": "function", **function}),
    ],
)
def test_of_openai_clients_no_schema_is_read_for_chat(
    client: str, list_of: str, tool: Callable[[Any], Any], reads: list[bytes]
) -> None:
    tools = [tool({"name": f"tool_{number}", "parameters": {"type": "object"}}) for number in range(9)]
    spoken = [{"role": "user", "content": PADDING}]
    data = WRITTEN[1]({"model": "m", list_of: spoken, "tools": tools})
    request = protocol(client).read_request(data, "")
    written = protocol("openai-chat").write_request(request, TARGETS[0])
    assert b"tool_8" in encode(written.members)
    assert not reads


def function(name: str, **more: Any) -> dict[str, Any]:
    properties = {"path": {"type": "string", "description": PADDING}}
    schema = {"type": "object", "properties": properties, "required": ["path"], **more}
    return {"name": name, "description": "Reads.", "input_schema": schema}


MANY = [function(f"tool_{number}") for number in range(9)]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Everything that is read after all."""
    found: list[bytes] = []

    def read_json(data: bytes | msgspec.Raw) -> Any:
        found.append(bytes(data))
        return msgspec.json.decode(data)

    monkeypatch.setattr(later, "read_json", read_json)
    return found


@pytest.mark.parametrize("target", TARGETS[:2], ids=lambda target: target.issuer)
@pytest.mark.parametrize(
    "tools",
    [
        MANY,
        [*MANY[:-1], {**MANY[-1], "cache_control": {"type": "ephemeral"}}],
        [{**tool, "eager_input_streaming": True, "strict": False} for tool in MANY],
        [*MANY, {"type": "web_search_20250305", "name": "web_search"}],
        [function(f"tool_{number}", **{"$schema": DIALECT}) for number in range(9)],
        [{"name": "bare", "description": PADDING, "input_schema": {}}],
    ],
    ids=["plain", "marked", "eager", "beside another", "of a dialect", "bare"],
)
def test_for_chat_no_schema_is_read(tools: list[Any], target: Target, reads: list[bytes]) -> None:
    request = read_body(compact(tools))
    written = protocol("openai-chat").write_request(request, target)
    assert b"$schema" not in encode(written.members)
    assert len(written.body["tools"]) >= len([tool for tool in tools if "input_schema" in tool])
    assert reads == []


def test_between_anthropics_they_pass_as_they_came(reads: list[bytes]) -> None:
    data = compact(MANY)
    written = encode(protocol("anthropic").write_request(read_body(data), TARGETS[0]).members)
    assert json.dumps(MANY, separators=(",", ":")).encode() in written
    assert reads == []


def test_of_a_tool_that_is_called_the_schema_is_read_once_and_no_other(reads: list[bytes]) -> None:
    request = read_body(compact(MANY))
    names = ToolNames(request.tools, NAMES)
    for _ in range(2):
        called, _ = resolve("tool_3", names)
        assert called is not None
        assert not schema_of(called, names).fits({"path": 1})
        assert called.tool.parameters == MANY[3]["input_schema"]
    assert len(reads) == len(MANY[3]["input_schema"])


def test_a_schema_further_down_is_found_however_it_is_spelled() -> None:
    inner = {"type": "string", "$schema": DIALECT}
    for written in WRITTEN:
        data = written(body([function("Read", properties={"path": inner})]))
        (tool,) = protocol("openai-chat").write_request(read_body(data), TARGETS[0]).body["tools"]
        assert tool["function"]["parameters"]["properties"] == {"path": {"type": "string"}}


def test_the_tools_that_are_held_do_not_hold_the_body() -> None:
    data = compact(MANY)
    before = sys.getrefcount(data)
    tools = read_body(data).tools
    MEMORY.__init__()
    gc.collect()
    assert isinstance(tools[0], UnreadTool)
    assert sys.getrefcount(data) == before


@pytest.mark.parametrize("written", WRITTEN)
def test_blanks_between_keywords_are_no_tokens(written: Callable[[Any], bytes]) -> None:
    request = read_body(written(body(MANY)))
    assert prompt_tokens(request) == prompt_tokens(read_body(compact(MANY)))
    assert (most_length(request) or 0) >= prompt_length(request)


def test_what_only_looks_like_a_list_of_tools_is_complained_of() -> None:
    for wrong in ({"a": PADDING}, PADDING):
        with pytest.raises(BadRequest, match="expected an array") as error:
            read_body(compact(wrong))
        assert error.value.path == "tools"


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 5000, "9" * 400 + ".5"])
def test_a_number_that_no_float_holds_is_handed_on_as_it_came(number: str) -> None:
    data = compact([function("Read", maximum="?")]).replace(b'"?"', number.encode())
    request = read_body(data)
    schema = request.tools[0].parameters or {}
    assert schema["required"] == ["path"]
    for upstream in PROTOCOLS:
        for one in (request, request.changed(stream=True)):
            written = encode(protocol(upstream).write_request(one, TARGETS[0]).members)
            assert number.encode() in written or upstream == "gemini"
    assert schema_of(ToolNames(request.tools, NAMES).declared()["Read"], ToolNames((), NAMES)) is not None


def test_nested_beyond_what_can_be_read_it_forbids_nothing() -> None:
    tool = UnreadTool(name="deep", keywords={"not": msgspec.Raw(b"[" * 5000 + b"]" * 5000)})
    assert tool.parameters == {}


def test_a_tool_is_what_it_says_however_it_was_read() -> None:
    (tool,) = read_body(compact([MANY[0]])).tools
    plain = Tool(name=tool.name, description="Reads.", parameters=MANY[0]["input_schema"], raw=tool.raw)
    assert tool == plain
    assert plain == tool
    assert tool != msgspec.structs.replace(plain, parameters={})
    assert msgspec.structs.replace(tool, raw=None) == msgspec.structs.replace(plain, raw=None)
    assert Unread(b"[1, 2]") == [1, 2]
    assert Unread(b"[1, 2]") != [2]
    assert list(Unread(b"[1, 2]"))[1:] == Unread(b"[1, 2]")[1:]
