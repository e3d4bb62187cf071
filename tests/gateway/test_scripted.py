"""The scripted model: well behaved in every protocol, badly behaved on request, and honest in its table."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import Iterator
from typing import Any

import aiohttp
import jsonschema_rs
import pytest
from support import corpus, laws, neutral, oracle, scripted_upstream, sdk_clients
from support.exchanges import declared
from support.scenarios import TOOLS
from support.scripted_upstream import FOREVER, Cut, ScriptedUpstream, Wait, in_background
from support.shape import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES

from dragoman import Answer, Exchange, Options, Target, protocol
from dragoman.messages import Format, Message, Request, Settings, Text, ToolCall, ToolChoice, ToolResult
from dragoman.protocols.collected import collect
from dragoman.scripted import BEHAVIOURS, Reply, ScriptedModel, serve
from dragoman.scripted.values import arguments
from dragoman.wire.reader import FrameReader

WEATHER = "What is the weather in Rome, for 3 days?"
OFFERED = declared(
    [
        {
            "name": "get_weather",
            "description": "Current weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer"},
                    "hours": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["city", "days"],
            },
        },
        *(tool for tool in TOOLS if tool["name"] != "get_weather"),
    ]
)
CALL = ("get_weather", {"city": "Rome", "days": 3})
GENEROUS = ("get_weather", {"city": "Rome", "days": 3, "hours": [3]})
NEVER = ("demo-stall", "demo-hang", "demo-endless")
STREAM_AND_WHOLE = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EVERY_PROTOCOL = pytest.mark.parametrize("name", PROTOCOLS)


def question(model: str = "demo", text: str = WEATHER, **more: Any) -> Request:
    return Request(model=model, messages=(Message("user", (Text(text),)),), tools=OFFERED, **more)


def written(name: str, request: Request) -> tuple[str, bytes]:
    outgoing = protocol(name).write_request(request, Target(model=request.model, issuer="scripted"))
    return outgoing.path, json.dumps(outgoing.body).encode()


def reply_to(name: str, request: Request, model: ScriptedModel | None = None) -> Reply:
    path, body = written(name, request)
    return (model or ScriptedModel(clock=lambda: 7)).answer(name, path, body)


def sent(reply: Reply) -> bytes:
    return b"".join(step for step in reply.steps if isinstance(step, bytes))


def understood(name: str, data: bytes) -> Answer:
    """The answer as Dragoman's decoder reads it."""
    reader, decoder = FrameReader(), protocol(name).decoder("scripted", False)
    frames = [*reader.feed(data), *reader.close()]
    return collect([*itertools.chain.from_iterable(map(decoder.frame, frames)), *decoder.close()])


def following(request: Request, answer: Answer, result: str, *, is_error: bool = False) -> Request:
    """The next turn of an agent that ran the tools."""
    results = tuple(
        ToolResult(call_id=c.id, name=c.name, parts=(Text(result),), is_error=is_error)
        for c in answer.calls()
    )
    turn = (Message("assistant", tuple(answer.parts)), Message("user", results))
    return request.changed(messages=(*request.messages, *turn))


def calls_of(said: Any) -> list[tuple[str, Any]]:
    return [(call["name"], call["arguments"]) for call in said["tool_calls"]]


# What it says


@EVERY_PROTOCOL
@STREAM_AND_WHOLE
@pytest.mark.parametrize("model", [b.name for b in BEHAVIOURS.values() if b.well_formed])
def test_well_formed_models_break_no_law(name: str, stream: bool, model: str) -> None:
    request = question(model, stream=stream)
    for text in ("Hello there!", WEATHER):
        asked = request.changed(messages=(Message("user", (Text(text),)),))
        data = sent(reply_to(name, asked))
        assert laws.check(name, data, stream=stream) == []
        assert oracle.parse(name, data, stream=stream)["error"] is None
        if answer_calls := understood(name, data).calls():
            again = following(asked, understood(name, data), "Sunny, 21 °C")
            closing = sent(reply_to(name, again))
            assert answer_calls[0].name == "get_weather"
            assert laws.check(name, closing, stream=stream) == []
            quoted = "Sunny, 21 °C" in neutral.reduce(name, closing, stream=stream)["text"]
            assert quoted is (model != "demo-loop")


@EVERY_PROTOCOL
@pytest.mark.parametrize("model", sorted(set(BEHAVIOURS) - set(NEVER)))
def test_a_body_says_what_the_stream_says(name: str, model: str) -> None:
    behaviour = BEHAVIOURS[model]
    streamed, whole = (reply_to(name, question(model, stream=stream)) for stream in (True, False))
    if (
        any(isinstance(step, Cut) for step in streamed.steps)
        or streamed.status != 200
        or model == "demo-error"
    ):
        assert any(isinstance(step, Cut) for step in whole.steps) or whole.status >= 400
    elif model not in ("demo-garbage", "demo-blank", "demo-overloaded") and name not in behaviour.unlike:
        one, other = understood(name, sent(streamed)), understood(name, sent(whole))
        assert one.text() == other.text()
        assert [c.arguments for c in one.calls()] == [c.arguments for c in other.calls()]
        assert one.end == other.end
        assert one.usage.output == other.usage.output


def test_the_same_request_gets_the_same_bytes() -> None:
    for name in PROTOCOLS:
        first, second = (sent(reply_to(name, question(stream=True))) for _ in range(2))
        assert first == second


def test_words_where_no_tool_fits_or_none_may_be_called() -> None:
    none = Settings(tool_choice=ToolChoice("none"))
    for request in (question(text="Good morning"), question(settings=none)):
        answer = understood(CHAT, sent(reply_to(CHAT, request)))
        assert not answer.calls()
        assert answer.text()


def test_the_clients_wishes_are_kept() -> None:
    named = Settings(tool_choice=ToolChoice("named", "read_file"))
    answer = understood(CHAT, sent(reply_to(CHAT, question(settings=named))))
    assert [call.name for call in answer.calls()] == ["read_file"]
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    wanted = Settings(format=Format("schema", schema, "answer"))
    request = question(text="Hi", settings=wanted)
    assert json.loads(understood(CHAT, sent(reply_to(CHAT, request))).text()) == {"ok": True}
    short = understood(
        ANTHROPIC, sent(reply_to(ANTHROPIC, question(text="Hi", settings=Settings(max_tokens=2))))
    )
    assert (len(short.text()), short.end and short.end.stop) == (8, "max_tokens")


@pytest.mark.parametrize("generous", [False, True])
def test_made_up_arguments_fit_their_schema(generous: bool) -> None:
    schemas = {json.dumps(t.get("parameters")): t for c in corpus.cases() for t in c.get("request_tools", [])}
    assert len(schemas) > 20
    for tool in schemas.values():
        made = arguments(tool.get("parameters"), "Read src/app.py and run `make test`", generous=generous)
        validator = jsonschema_rs.validator_for(tool.get("parameters") or {})
        assert list(validator.iter_errors(made)) == [], tool["name"]


# What it does wrong, and what Dragoman makes of it

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
    "demo-interleaved": [CALL, ("get_weather", {"city": "Paris", "days": 10})],
}
BROKEN = ("demo-error", "demo-overloaded", "demo-cut", "demo-reset", "demo-garbage", "demo-blank")


def through_dragoman(name: str, client: str, model: str, *, stream: bool) -> tuple[Exchange, bytes]:
    reply = reply_to(name, question(model, stream=stream))
    it = Exchange(name, client, tools=OFFERED, options=Options(stream=stream, model=model))
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
def test_a_misbehaviour_shows_in_the_bytes_or_the_table_says_why_not(name: str) -> None:
    """Clean bytes and the same call as `demo` would make mean that nothing was spoilt."""
    for model in set(MENDED) - {"demo-fragments", "demo-think"}:
        data = sent(reply_to(name, question(model, stream=True)))
        good = laws.check(name, data, stream=True) == []
        calls = calls_of(neutral.reduce(name, data, stream=True))
        spoilt = not good or calls not in ([CALL], [GENEROUS], MENDED["demo-interleaved"])
        native = model == "demo-interleaved" and name in (CHAT, RESPONSES)  # there it is legal
        assert spoilt or native or name in BEHAVIOURS[model].unlike, model


def test_interleaved_calls_really_interleave() -> None:
    for name, marks in (
        (CHAT, (b'"index":0,"function"', b'"index":1,"function"')),
        (RESPONSES, (b'"output_index":1', b'"output_index":2')),
    ):
        data = sent(reply_to(name, question("demo-interleaved", stream=True)))
        first, second = marks
        assert data.index(second) < data.rindex(first)


@EVERY_PROTOCOL
def test_an_invalid_call_is_made_again_when_told(name: str) -> None:
    request = question("demo-invalid")
    answer = understood(name, sent(reply_to(name, request)))
    assert json.loads(answer.calls()[0].arguments) == {"days": 3}
    told = following(request, answer, "The arguments of get_weather are not valid", is_error=True)
    answer = understood(name, sent(reply_to(name, told)))
    assert json.loads(answer.calls()[0].arguments) == CALL[1]


@EVERY_PROTOCOL
def test_a_sealed_model_insists_on_its_signatures(name: str) -> None:
    request = question("demo-sealed")
    answer = understood(name, sent(reply_to(name, request)))
    kept = following(request, answer, "Sunny")
    assert reply_to(name, kept).status == 200
    unsigned = tuple(ToolCall(id=c.id, name=c.name, arguments=c.arguments) for c in answer.calls())
    lost = kept.changed(messages=(kept.messages[0], Message("assistant", unsigned), kept.messages[2]))
    assert reply_to(name, lost).status == (200 if name == CHAT else 400)
    path, body = written(name, kept)
    forged = body.replace(b"c2NyaXB0ZWQ6", b"Zm9yZ2VkIQ=="[:12])
    assert forged != body
    assert ScriptedModel().answer(name, path, forged).status == 400


def test_a_flaky_model_takes_the_second_attempt() -> None:
    model = ScriptedModel()
    for name in PROTOCOLS:
        replies = [reply_to(name, question("demo-flaky"), model) for _ in range(3)]
        assert [reply.status for reply in replies] == [429, 200, 429]
        assert replies[0].headers["retry-after"] == "1"


@EVERY_PROTOCOL
def test_errors_are_in_the_protocols_words(name: str) -> None:
    path, body = written(name, question("demo-nonsense"))
    model = ScriptedModel()
    unknown, unread = model.answer(name, path, body), model.answer(name, path, b"{")
    assert (unknown.status, unread.status) == (404, 400)
    for reply in (unknown, unread, model.no_such_path(name, "/x")):
        assert oracle.raises_error(name, sent(reply), stream=False, status=reply.status)


# Over real sockets


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with in_background() as served:
        yield served


def through_sdk(name: str, sdk: Any, request: Request) -> bytes:
    """The request through the official SDK, and the raw bytes it got."""
    _, data = written(name, request)
    body = json.loads(data)
    stream = {"stream": True} if request.stream else {}
    match name:
        case "anthropic":
            with sdk.messages.with_streaming_response.create(**body | stream) as response:
                return response.read()
        case "openai-chat":
            with sdk.chat.completions.with_streaming_response.create(**body | stream) as response:
                return response.read()
        case "openai-responses":
            with sdk.responses.with_streaming_response.create(**body | stream) as response:
                return response.read()
        case _:
            raise AssertionError(name)


@pytest.mark.parametrize("name", [ANTHROPIC, CHAT, RESPONSES])
@STREAM_AND_WHOLE
def test_a_whole_conversation_through_the_sdk(name: str, stream: bool, upstream: ScriptedUpstream) -> None:
    with sdk_clients.client(name, upstream.url) as sdk:
        request = question(stream=stream)
        answer = understood(name, through_sdk(name, sdk, request))
        assert [(c.name, json.loads(c.arguments)) for c in answer.calls()] == [CALL]
        closing = understood(name, through_sdk(name, sdk, following(request, answer, "Sunny")))
        assert "Sunny" in closing.text()
        assert upstream.last.key == "k"
        models = sdk.models.list()
        assert {model.id for model in models} == set(BEHAVIOURS)
        assert sdk.models.retrieve("demo-leak").id == "demo-leak"


@STREAM_AND_WHOLE
def test_a_whole_conversation_through_google_genai(stream: bool, upstream: ScriptedUpstream) -> None:
    sdk = sdk_clients.client(GEMINI, upstream.url)
    request = question()
    _, data = written(GEMINI, request)
    contents, config = (
        [WEATHER],
        {"tools": json.loads(data)["tools"], "automatic_function_calling": {"disable": True}},
    )
    create = sdk.models.generate_content_stream if stream else sdk.models.generate_content

    def ask() -> list[Any]:
        said = create(model="demo", contents=contents, config=config)
        return [part for chunk in (said if stream else [said]) for part in chunk.candidates[0].content.parts]

    call = next(part for part in ask() if part.function_call)
    assert (call.function_call.name, call.function_call.args) == CALL
    result = {"id": call.function_call.id, "name": "get_weather", "response": {"output": "Sunny"}}
    contents += [
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [{"function_response": result}]},
    ]
    assert "Sunny" in "".join(part.text or "" for part in ask())
    assert {model.name for model in sdk.models.list()} == {f"models/{name}" for name in BEHAVIOURS}
    counted = sdk.models.count_tokens(model="demo", contents=[WEATHER]).total_tokens
    assert (
        counted
        == sdk.models.generate_content(model="demo", contents=WEATHER).usage_metadata.prompt_token_count
    )


def test_counting_agrees_with_the_usage(upstream: ScriptedUpstream) -> None:
    with sdk_clients.client(ANTHROPIC, upstream.url) as sdk:
        messages = [{"role": "user", "content": WEATHER}]
        counted = sdk.messages.count_tokens(model="demo", messages=messages).input_tokens
        assert (
            counted == sdk.messages.create(model="demo", max_tokens=99, messages=messages).usage.input_tokens
        )


async def post(session: aiohttp.ClientSession, url: str, name: str, request: Request) -> tuple[int, bytes]:
    path, body = written(name, request)
    async with session.post(url + path, data=body) as response:
        return response.status, await response.read()


def test_every_model_answers_every_protocol_over_a_socket() -> None:
    async def scene() -> None:
        async with ScriptedUpstream() as upstream, aiohttp.ClientSession() as session:
            for model, name, stream in itertools.product(
                sorted(set(BEHAVIOURS) - set(NEVER)), PROTOCOLS, (True, False)
            ):
                request = question(model, stream=stream)
                expected = reply_to(name, request, ScriptedModel(clock=lambda: 1_800_000_000))
                torn = any(isinstance(step, Cut) for step in expected.steps)
                if torn:
                    with pytest.raises(aiohttp.ClientError):
                        await post(session, upstream.url, name, request)
                else:
                    got = await post(session, upstream.url, name, request)
                    assert got == (
                        expected.status,
                        sent(reply_to(name, request, ScriptedModel(clock=lambda: 1_800_000_000))),
                    )

    asyncio.run(scene())


@pytest.mark.parametrize("model", NEVER)
@EVERY_PROTOCOL
@STREAM_AND_WHOLE
def test_the_upstream_sees_at_once_that_its_client_is_gone(name: str, model: str, stream: bool) -> None:
    async def scene() -> None:
        async with ScriptedUpstream(pace=1.0) as upstream, aiohttp.ClientSession() as session:
            asking = asyncio.create_task(post(session, upstream.url, name, question(model, stream=stream)))
            seen = await upstream.wait_seen()
            await asyncio.sleep(0.02)
            assert not asking.done()
            asking.cancel()
            assert await seen.wait_closed(1.0)
            assert not seen.finished.is_set()
            with contextlib.suppress(asyncio.CancelledError):
                await asking

    asyncio.run(scene())


def test_gemini_streams_an_array_to_those_who_do_not_ask_for_events() -> None:
    async def scene() -> None:
        url, stop = await serve(pace=0)
        path, body = written(GEMINI, question(stream=True))
        async with aiohttp.ClientSession() as session:
            async with session.post(url + path.partition("?")[0], data=body) as response:
                chunks = json.loads(await response.read())
            async with session.get(url + "/nowhere") as response:
                assert response.status == 404
        await stop()
        assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"

    asyncio.run(scene())


# The knobs of the upstream for tests


def test_scripts_come_first_and_requests_are_kept() -> None:
    async def scene() -> None:
        async with ScriptedUpstream() as upstream, aiohttp.ClientSession() as session:
            upstream.script(
                b"one", [b"two", Wait(0), b"!"], scripted_upstream.status(418, b"tea", retry_after="9")
            )
            got = [await post(session, upstream.url, CHAT, question()) for _ in range(4)]
            assert got[:3] == [(200, b"one"), (200, b"two!"), (418, b"tea")]
            assert b"get_weather" in got[3][1]
            assert upstream.seen[0].json["model"] == "demo"
            assert await upstream.last.wait_finished()
            upstream.keys = {"good"}
            async with session.post(upstream.url + "/v1/messages", headers={"x-api-key": "bad"}) as response:
                assert response.status == 401
            assert upstream.last.key == "bad"

    asyncio.run(scene())


FAULTS = {
    "no_answer": scripted_upstream.no_answer(),
    "reset": scripted_upstream.no_answer(reset=True),
    "not_http": scripted_upstream.not_http(),
    "torn_character": scripted_upstream.torn_character(b"data: 1\n\n"),
    "slow_headers": scripted_upstream.slow_headers(FOREVER),
    "never_ending": scripted_upstream.never_ending(every=0.01),
    "silent": scripted_upstream.stream(b"data: 1\n\n", Wait(FOREVER)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_felt_by_the_client(fault: str) -> None:
    async def scene() -> None:
        timeout = aiohttp.ClientTimeout(total=0.3)
        async with ScriptedUpstream() as upstream, aiohttp.ClientSession(timeout=timeout) as session:
            upstream.script(FAULTS[fault])
            with pytest.raises((aiohttp.ClientError, TimeoutError)):
                await post(session, upstream.url, CHAT, question())

    asyncio.run(scene())


def test_sizes_and_addresses() -> None:
    async def scene() -> None:
        async with ScriptedUpstream() as upstream, aiohttp.ClientSession() as session:
            upstream.script(
                scripted_upstream.huge_frame(1 << 20),
                scripted_upstream.garbage(),
                scripted_upstream.redirect("/v1/models"),
            )
            assert len((await post(session, upstream.url, CHAT, question()))[1]) > 1 << 20
            assert len((await post(session, upstream.url, CHAT, question()))[1]) == 4096
            async with session.get(upstream.url, allow_redirects=False) as response:
                assert (response.status, response.headers["location"]) == (307, "/v1/models")
            with pytest.raises(aiohttp.ClientConnectorError):
                await post(session, scripted_upstream.refused_url(), CHAT, question())

    asyncio.run(scene())
