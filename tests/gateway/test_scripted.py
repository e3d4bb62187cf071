"""The scripted model: correct in every protocol, faulty on request, and as its table describes."""

import itertools
import json
from typing import Any

import jsonschema_rs
import pytest
from support import oracle
from support.scripted_talk import (
    CALL,
    GENEROUS,
    NEVER,
    OFFERED,
    SECOND_CALL,
    WEATHER,
    answered,
    calls_of,
    parts_of,
    question,
    reply_to,
    sent,
    written,
)
from support.scripted_upstream import Cut
from support.wires import ANTHROPIC, CHAT, PROTOCOLS, RESPONSES

from dragoman import Answer, Options, Translation, protocol
from dragoman.conform import corpus, laws, neutral
from dragoman.conform.scripted import BEHAVIOURS, Reply, ScriptedModel
from dragoman.conform.scripted.agent import last_user_text
from dragoman.conform.scripted.values import arguments
from dragoman.model.messages import (
    Format,
    Media,
    Message,
    Request,
    Settings,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
)
from dragoman.protocols.common.collect import collect
from dragoman.wire.reader import FrameReader

STREAM_AND_WHOLE = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EVERY_PROTOCOL = pytest.mark.parametrize("name", PROTOCOLS)


def understood(name: str, data: bytes) -> Answer:
    """The answer as Dragoman's decoder reads it, signatures included."""
    reader, decoder = FrameReader(), protocol(name).decoder("scripted", False)
    frames = [*reader.feed(data), *reader.close()]
    return collect([*itertools.chain.from_iterable(map(decoder.frame, frames)), *decoder.close()])


def breaks_off(reply: Reply) -> bool:
    return any(isinstance(step, Cut) for step in reply.steps)


# Correct answers


def test_every_model_is_described_in_a_line() -> None:
    for name, behaviour in BEHAVIOURS.items():
        assert name == behaviour.name
        assert 5 < len(behaviour.description) < 90
        assert set(behaviour.exceptions) <= set(PROTOCOLS)


@EVERY_PROTOCOL
@STREAM_AND_WHOLE
@pytest.mark.parametrize("model", [b.name for b in BEHAVIOURS.values() if b.well_formed])
def test_well_formed_models_break_no_law(name: str, stream: bool, model: str) -> None:
    for text in ("Hello there!", WEATHER):
        request = question(model, text, stream=stream)
        data = sent(reply_to(name, request))
        assert laws.check(name, data, stream=stream) == []
        said = oracle.parse(name, data, stream=stream)
        assert said["error"] is None
        assert said == neutral.reduce(name, data, stream=stream)
        if calls := understood(name, data).calls():
            again = answered(request, tuple(understood(name, data).parts), "Sunny, 21 °C")
            closing = sent(reply_to(name, again))
            assert calls[0].name == "get_weather"
            assert laws.check(name, closing, stream=stream) == []
            quoted = "Sunny, 21 °C" in neutral.reduce(name, closing, stream=stream)["text"]
            assert quoted is (model != "demo-loop")


@EVERY_PROTOCOL
@pytest.mark.parametrize("model", sorted(set(BEHAVIOURS) - {*NEVER, "demo-garbage", "demo-blank"}))
def test_a_body_says_what_the_stream_says(name: str, model: str) -> None:
    streamed, whole = (reply_to(name, question(model, stream=stream)) for stream in (True, False))
    if breaks_off(streamed):
        assert breaks_off(whole)
    elif streamed.status != 200:
        assert (whole.status, sent(whole) == b"") == (streamed.status, sent(streamed) == b"")
    else:
        one, other = (neutral.reduce(name, sent(r), stream=r is streamed) for r in (streamed, whole))
        assert one["stop"] == other["stop"]
        assert one["error"] == other["error"]
        if one["error"] is None and name not in BEHAVIOURS[model].exceptions:
            assert one["text"] == other["text"]
            assert calls_of(one) == calls_of(other)
            assert one["usage"] == other["usage"]


def test_text_if_no_tool_fits_or_may_be_called() -> None:
    none = Settings(tool_choice=ToolChoice("none"))
    for request in (question(text="Good morning"), question(settings=none)):
        answer = understood(CHAT, sent(reply_to(CHAT, request)))
        assert not answer.calls()
        assert answer.text()


def test_settings_of_the_client_are_respected() -> None:
    named = Settings(tool_choice=ToolChoice("named", "read_file"))
    answer = understood(CHAT, sent(reply_to(CHAT, question(settings=named))))
    assert [call.name for call in answer.calls()] == ["read_file"]
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    request = question(text="Hi", settings=Settings(format=Format("schema", schema, "answer")))
    assert json.loads(understood(CHAT, sent(reply_to(CHAT, request))).text()) == {"ok": True}
    request = question(text="Hi", settings=Settings(max_tokens=2))
    short = understood(ANTHROPIC, sent(reply_to(ANTHROPIC, request)))
    assert (len(short.text()), short.end and short.end.stop) == (8, "max_tokens")


AWKWARD: list[dict[str, Any]] = [
    {"type": "OBJECT", "properties": {"n": {"type": "INTEGER"}}, "required": ["n"]},
    {
        "$defs": {"Spot": {"properties": {"at": {"format": "date-time"}}, "required": ["at"]}},
        "properties": {"spots": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/Spot"}}},
        "required": ["spots"],
        "additionalProperties": False,
    },
    {
        "allOf": [{"properties": {"a": {"type": "integer", "minimum": 50, "multipleOf": 7}}}],
        "properties": {"b": {"type": "string", "pattern": "^[A-Z]{3}-\\d+$"}},
        "required": ["a", "b"],
        "type": "object",
    },
    {
        "type": "object",
        "properties": {
            "x": {"anyOf": [{"type": "null"}, {"type": "number", "exclusiveMaximum": 1}]},
            "y": {"type": ["null", "boolean"]},
            "z": {"type": "string", "maxLength": 4, "minLength": 3},
            "deep": {"$ref": "#"},
        },
        "required": ["x", "y", "z", "undeclared"],
    },
]  # fmt: skip


@pytest.mark.parametrize("with_optional", [False, True])
def test_generated_arguments_fit_their_schema(with_optional: bool) -> None:
    offered = [
        tool.get("parameters") or {} for case in corpus.cases() for tool in case.get("request_tools", [])
    ]
    schemas = {json.dumps(schema): schema for schema in (*offered, *AWKWARD)}
    assert len(schemas) > 20
    for schema in schemas.values():
        made = arguments(schema, "Read src/app.py and run `make test` 3 times", with_optional=with_optional)
        if jsonschema_rs.meta.is_valid(schema):  # not Gemini's `OBJECT`, nor Python's `float`
            assert list(jsonschema_rs.validator_for(schema).iter_errors(made)) == [], schema


# Faulty answers, and how Dragoman handles them

MENDED = {
    "demo-misnamed": [GENEROUS],
    "demo-miscased": [GENEROUS],
    "demo-stringly": [GENEROUS],
    "demo-wrapped": [GENEROUS],
    "demo-syntax": [GENEROUS],
    "demo-fenced": [GENEROUS],
    "demo-ghost": [GENEROUS],
    "demo-duplicate": [GENEROUS],
    "demo-leak": [GENEROUS],
    "demo-fragments": [CALL],
    "demo-think": [CALL],
    "demo-interleaved": [CALL, SECOND_CALL],
}
BROKEN = ("demo-error", "demo-overloaded", "demo-cut", "demo-reset", "demo-garbage", "demo-blank")


def through_dragoman(name: str, client: str, model: str, *, stream: bool) -> tuple[Translation, bytes]:
    reply = reply_to(name, question(model, stream=stream))
    it = Translation(name, client, tools=OFFERED, options=Options(stream=stream, model=model))
    if reply.status != 200:
        return it, it.refuse(reply.status, sent(reply))
    return it, it.feed(sent(reply)) + it.close()


@EVERY_PROTOCOL
@STREAM_AND_WHOLE
@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("model", MENDED)
def test_dragoman_mends_what_the_model_spoils(name: str, client: str, model: str, stream: bool) -> None:
    _, data = through_dragoman(name, client, model, stream=stream)
    said = neutral.reduce(client, data, stream=stream)
    assert calls_of(said) == MENDED[model]
    assert said["stop"] == "tool_use"
    assert laws.check(client, data, stream=stream) == []


@EVERY_PROTOCOL
@STREAM_AND_WHOLE
@pytest.mark.parametrize("model", BROKEN)
def test_a_broken_answer_is_an_error_to_dragoman(name: str, model: str, stream: bool) -> None:
    it, _ = through_dragoman(name, CHAT, model, stream=stream)
    assert it.failure is not None
    assert it.failure.message


@EVERY_PROTOCOL
def test_every_fault_shows_in_the_bytes_or_the_table_explains_why_not(name: str) -> None:
    """Lawful bytes with the calls of a correct model mean that nothing is faulty."""
    for model in set(MENDED) - {"demo-fragments", "demo-think"}:
        data = sent(reply_to(name, question(model, stream=True)))
        calls = calls_of(neutral.reduce(name, data, stream=True))
        lawful = laws.check(name, data, stream=True) == []
        spoilt = not lawful or calls not in ([CALL], [GENEROUS], [CALL, SECOND_CALL])
        legal = model == "demo-interleaved" and name in (CHAT, RESPONSES)
        assert spoilt or legal or name in BEHAVIOURS[model].exceptions, model


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        (ANTHROPIC, b'"index":1', b'"index":2'),
        (CHAT, b'"index":0,"function"', b'"index":1,"function"'),
        (RESPONSES, b'"output_index":1', b'"output_index":2'),
    ],
)
def test_interleaved_calls_really_interleave(name: str, first: bytes, second: bytes) -> None:
    data = sent(reply_to(name, question("demo-interleaved", stream=True)))
    assert data.index(second) < data.rindex(first)


@EVERY_PROTOCOL
def test_an_invalid_call_is_corrected_after_an_error_result(name: str) -> None:
    request = question("demo-invalid")
    said = neutral.reduce(name, sent(reply_to(name, request)), stream=False)
    assert calls_of(said) == [("get_weather", {"days": 3})]
    told = answered(request, parts_of(said), "The arguments of get_weather are not valid", is_error=True)
    said = neutral.reduce(name, sent(reply_to(name, told)), stream=False)
    assert calls_of(said) == [CALL]


@EVERY_PROTOCOL
def test_a_sealed_model_requires_its_signatures(name: str) -> None:
    request = question("demo-sealed")
    answer = understood(name, sent(reply_to(name, request)))
    kept = answered(request, tuple(answer.parts), "Sunny")
    assert reply_to(name, kept).status == 200
    unsigned = tuple(ToolCall(id=c.id, name=c.name, arguments=c.arguments) for c in answer.calls())
    lost = kept.changed(messages=(kept.messages[0], Message("assistant", unsigned), kept.messages[2]))
    assert reply_to(name, lost).status == (200 if name == CHAT else 400)
    path, body = written(name, kept)
    forged = body.replace(b"c2NyaXB0ZWQ6", b"Zm9yZ2VyeTog")
    assert forged != body
    assert ScriptedModel().answer(name, path, forged).status == 400


def test_a_flaky_model_answers_the_second_attempt() -> None:
    model = ScriptedModel()
    for name in PROTOCOLS:
        replies = [reply_to(name, question("demo-flaky"), model) for _ in range(3)]
        assert [reply.status for reply in replies] == [429, 200, 429]
        assert replies[0].headers["retry-after"] == "1"


@pytest.mark.parametrize("model", sorted(set(BEHAVIOURS) - set(NEVER)))
def test_every_model_copes_with_any_conversation(model: str) -> None:
    """No tools, freeform tools, no text, tools with odd schemas: always an answer, never a crash."""
    patch = Tool(name="apply_patch", description="Edit files by a patch", kind="custom")
    odd = Tool(name="odd", parameters={"properties": ["a"], "required": "b", "type": 7})
    picture = Media(kind="image", media_type="image/png", data="aGk=")
    user = Message("user", (Text("Please patch hello.txt"), picture))
    for name, stream, tools in itertools.product(PROTOCOLS, (True, False), ((), (patch,), (odd,))):
        for message in (user, Message("user", (picture,))):
            request = question(model, stream=stream).changed(tools=tools, messages=(message,))
            assert sent(reply_to(name, request)) or model == "demo-blank"


def test_a_freeform_tool_gets_text() -> None:
    patch = Tool(name="apply_patch", description="Edit files by a patch", kind="custom")
    for name in (CHAT, RESPONSES):
        request = question("demo-stringly", "Please patch hello.txt").changed(tools=(patch,))
        [call] = understood(name, sent(reply_to(name, request))).calls()
        assert (call.kind, call.arguments[:15]) == ("custom", "*** Begin Patch")
    script = Tool(name="exec", description="Run JavaScript code", kind="custom")
    request = question(text="Run the command `ls`").changed(tools=(script,))
    for name in PROTOCOLS:  # where a protocol has no freeform tools, they travel as functions
        [call] = understood(name, sent(reply_to(name, request))).calls()
        script_text = call.arguments if call.kind == "custom" else json.loads(call.arguments)["input"]
        assert script_text == 'text(await tools.exec_command({cmd: "ls"}));'


@EVERY_PROTOCOL
def test_errors_have_the_form_of_the_protocol(name: str) -> None:
    path, body = written(name, question("demo-nonsense"))
    model = ScriptedModel()
    unknown, unread = model.answer(name, path, body), model.answer(name, path, b"{")
    assert (unknown.status, unread.status) == (404, 400)
    for reply in (unknown, unread, model.no_such_path(name, "/x")):
        assert oracle.raises_error(name, sent(reply), stream=False, status=reply.status)


def test_reminders_are_not_questions() -> None:
    """Coding agents add reminders to the user's text."""
    parts = (Text("<system-reminder>Read the files.</system-reminder>"), Text("Good morning"))
    request = question().changed(messages=(Message("user", parts),))
    assert "“Good morning”" in understood(ANTHROPIC, sent(reply_to(ANTHROPIC, request))).text()


def test_reminders_of_the_agent_are_not_the_users_text() -> None:
    reminder = "<system-reminder>Mind the gap.</system-reminder>"
    for text in (f"{reminder}\n\nRun ls", f"Run ls\n{reminder}", "Run ls"):
        request = Request(model="demo", messages=(Message("user", (Text(reminder), Text(text))),))
        assert last_user_text(request) == "Run ls"


AGENTS_TOOLS = (
    Tool(name="Agent", description="Start another agent", parameters={"type": "object"}),
    Tool(name="Glob", description="Find files by a command", parameters={"type": "object"}),
    Tool(
        name="Bash",
        description="Run",
        parameters={
            "type": "object",
            "properties": {
                "command": {"type": "string"},
                "timeout": {"type": "number"},
                "run_in_background": {"type": "boolean"},
            },
            "required": ["command"],
        },
    ),
)


def conversation(model: str, text: str, *, most: int = 30) -> list[list[ToolCall]]:
    """The calls of each answer while an agent behind Dragoman runs every call."""
    request = Request(model=model, messages=(Message("user", (Text(text),)),), tools=AGENTS_TOOLS)
    made: list[list[ToolCall]] = []
    while len(made) < most:
        reply = reply_to(ANTHROPIC, request)
        assert reply.status == 200
        it = Translation(ANTHROPIC, ANTHROPIC, tools=AGENTS_TOOLS, options=Options(stream=False, model=model))
        answer = understood(ANTHROPIC, it.feed(sent(reply)) + it.close())
        made.append(list(answer.calls()))
        if not made[-1]:
            break
        request = answered(request, tuple(answer.parts), "done")
    return made


ANSWERING = ["demo", "demo-parallel", "demo-thinking", "demo-sealed", "demo-loop", "demo-invalid", *MENDED]


@pytest.mark.parametrize("model", [*ANSWERING, "demo-invented"])
@pytest.mark.parametrize("text", ["Hello there!", "Run the command `ls`"])
def test_every_model_ends_its_turn(model: str, text: str) -> None:
    made = conversation(model, text)
    assert len(made) <= 9
    assert made[-1] == []
    assert made[0] or (model.partition("-")[2] in ("", "thinking", "sealed", "think") and "Hello" in text)


def test_a_shell_tool_is_preferred_over_tools_that_run_others() -> None:
    hello, run = (conversation("demo-stringly", text) for text in ("Hello!", "Run the command `make`"))
    assert [[call.name for call in calls] for calls in hello] == [["Bash"], []]
    wanted = {"command": "make", "timeout": 20_000, "run_in_background": False}
    assert json.loads(run[0][0].arguments) == wanted


def test_an_agent_without_tools_gets_an_edit_it_can_apply() -> None:
    text = 'Write "well done" to proof.txt\n\n# *SEARCH/REPLACE block* Rules:\n\nUse `x.py`, "quotes".'
    request = Request(model="demo", messages=(Message("user", (Text(text),)),))
    said = understood(CHAT, sent(reply_to(CHAT, request))).text()
    assert "proof.txt\n```\n<<<<<<< SEARCH\n=======\nwell done\n>>>>>>> REPLACE\n```" in said


def test_moved_system_text_is_not_the_users() -> None:
    parts = (
        Text("Run `ls`"),
        Text("<system>\nNever run `rm`\n</system>"),
        Text("<environment_details>\nFolder: /\n</environment_details>"),
    )
    assert last_user_text(Request(model="demo", messages=(Message("user", parts),))) == "Run `ls`"
