"""Typed decoding of requests: exact error messages, and unchanged bytes for the client's own protocol."""

import msgspec
import pytest

from dragoman.model.errors import BadRequest
from dragoman.model.messages import Text
from dragoman.protocols.base import Target
from dragoman.protocols.common.typed_json import Reader, as_json, bad_request
from dragoman.protocols.registry import CLIENTS, protocol

# Each list of messages has unknown members, unusual number spellings, and odd whitespace.
ODD = {
    "anthropic": (
        "messages",
        b'{"x_first":1.50e1,"max_tokens":9,"model":"m","messages":%b,"zz":{"b":1,"a":2}}',
        b'[ {"content":"hi","role":"user","who":[1.0]}, {"role":"assistant","content":[{"type":"tool_use",'
        b'"id":"t1","name":"f","input":{"n": 1.0e2,"m":10000000000000000000000},"later":true}]},'
        b'{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":"ok","new":{}}]}]',
        "/v1/messages",
    ),
    "openai-chat": (
        "messages",
        b'{"x_first":1.50e1,"model":"m","messages":%b,"zz":{"b":1,"a":2}}',
        b'[ {"content":"hi","role":"user","who":[1.0]}, {"role":"assistant","content":null,"tool_calls":'
        b'[{"type":"function","id":"c1","function":{"arguments":"{\\"n\\": 1.0e2}","name":"f"},"new":1}]},'
        b'{"tool_call_id":"c1","role":"tool","content":"ok"}]',
        "/v1/chat/completions",
    ),
    "openai-responses": (
        "input",
        b'{"x_first":1.50e1,"model":"m","input":%b,"zz":{"b":1,"a":2}}',
        b'[ {"content":"hi","role":"user","who":[1.0]}, {"call_id":"c1","type":"function_call","name":"f",'
        b'"arguments":"{\\"n\\": 1.0e2}","later":true},'
        b'{"output":"ok","type":"function_call_output","call_id":"c1"}]',
        "/v1/responses",
    ),
    "gemini": (
        "contents",
        b'{"x_first":1.50e1,"contents":%b,"zz":{"b":1,"a":2}}',
        b'[ {"parts":[{"text":"hi"}],"role":"user","who":[1.0]}, {"role":"model","parts":[{"functionCall":'
        b'{"name":"f","id":"c1","args":{"n": 1.0e2}},"later":true}]},'
        b'{"role":"user","parts":[{"functionResponse":{"response":{"output":"ok"},"name":"f","id":"c1"}}]}]',
        "/v1beta/models/m:generateContent",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_an_upstream_of_the_same_protocol_gets_the_clients_own_bytes(name: str) -> None:
    member, body, messages, path = ODD[name]
    wire = protocol(name)
    request = wire.read_request(body % messages, path)
    sent = wire.write_request(request, Target(model="up")).encoded()
    members = msgspec.json.decode(sent, type=dict[str, msgspec.Raw])
    assert bytes(members[member]) == messages
    assert [key for key in members if key != "model"] == [
        key for key in msgspec.json.decode(body % b"[]") if key != "model"
    ]
    assert bytes(members["zz"]) == b'{"b":1,"a":2}'


@pytest.mark.parametrize("name", [*ODD, "cursor"])
@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (b"", "the request body is not valid JSON"),
        (b"nope", "the request body is not valid JSON"),
        (b"[]", "the request body: expected an object, got an array"),
        (b'{"a":"\xff"}', "the request body is not valid"),
        # Python 3.12 and later read some thousand levels.
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "the request body is nested too deeply"),
    ],
)
def test_a_body_that_is_no_json_object_is_refused(name: str, broken: bytes, complaint: str) -> None:
    with pytest.raises(BadRequest, match=complaint.split(":")[0]) as caught:
        CLIENTS[name].read_request(broken, ODD[name][3] if name in ODD else "")
    assert str(caught.value).startswith(complaint)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize(
    ("items", "complaint"), [(b"[null]", "[0]: expected an object, got null"), (b"7", "an array")]
)
def test_an_invalid_message_is_refused_with_its_place(name: str, items: bytes, complaint: str) -> None:
    member, body, _, path = ODD[name]
    with pytest.raises(BadRequest) as caught:
        protocol(name).read_request(body % items, path)
    assert caught.value.path.startswith(member)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("member", [b"who", b"zz"])
def test_an_undecoded_member_must_be_valid_utf8(name: str, member: bytes) -> None:
    _, body, messages, path = ODD[name]
    broken = (body % messages).replace(b'"%b":' % member, b'"\xff":"\xfe","%b":' % member)
    with pytest.raises(BadRequest, match="not valid UTF-8"):
        protocol(name).read_request(broken, path)


@pytest.mark.parametrize("name", ODD)
def test_a_lone_surrogate_is_replaced(name: str) -> None:
    _, body, messages, path = ODD[name]
    request = protocol(name).read_request(body % messages.replace(b"hi", rb"hi \ud83d"), path)
    assert request.messages[0].parts[0] == Text("hi \N{REPLACEMENT CHARACTER}")


class Thing(msgspec.Struct, tag="thing", tag_field="type"):
    name: str
    sizes: list[int] = []


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ({"type": "thing"}, "at.name", "is required"),
        ({"type": "thing", "name": None}, "at.name", "is required"),
        ({"type": "thing", "name": 7}, "at.name", "expected a string, got an integer"),
        (
            {"type": "thing", "name": "x", "sizes": [1, "2"]},
            "at.sizes[1]",
            "expected an integer, got a string",
        ),
        ({"type": "thing", "name": "x", "sizes": [None]}, "at.sizes[0]", "expected an integer, got null"),
        ([], "at", "expected an object, got an array"),
    ],
)
def test_errors_name_the_place_and_the_value(value: object, path: str, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        Reader(Thing).read(as_json(value), "at")
    assert (caught.value.path, str(caught.value)) == (path, f"{path}: {message}")


def test_members_that_a_struct_does_not_name_are_kept() -> None:
    members = {"type": as_json("thing"), "name": as_json("x"), "new": as_json({"a": [1]})}
    thing, unknown = Reader(Thing).split(members, "at")
    assert (thing.name, unknown) == ("x", {"new": {"a": [1]}})


def test_other_errors_keep_their_message() -> None:
    error = bad_request(msgspec.ValidationError("Number out of range - at `$.n`"), "at")
    assert str(error) == "at.n: number out of range"


def test_python_values_with_a_lone_surrogate_become_json() -> None:
    assert bytes(as_json({"a": "x\ud83d"})) == '{"a":"x\N{REPLACEMENT CHARACTER}"}'.encode()
