"""`ToolLoop` with the official SDKs, sync and async, streamed and whole, against a scripted server."""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from support import samples_anthropic, samples_chat, samples_gemini, samples_responses
from support.scenarios import Scenario, Text, Thinking, ToolCall
from support.scripted_server import ScriptedServer, scripted_server
from support.sdk_clients import SETTINGS, client, close
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES

from dragoman import DragomanError
from dragoman.conform.shape import Json, compact
from dragoman.library.calls import CompleteCall, FailedCall, PartialCall
from dragoman.library.loop import Run, ToolLoop

RENDERERS: dict[str, Any] = {
    ANTHROPIC: samples_anthropic,
    CHAT: samples_chat,
    RESPONSES: samples_responses,
    GEMINI: samples_gemini,
}
SIGNATURE = "c2lnbmVkLWJ5LXRoZS1pc3N1ZXI="
DONE = Scenario((Text(("All ", "done.")),), "end_turn")
# google-genai subclasses aiohttp's session, which aiohttp discourages.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")
every_protocol = pytest.mark.parametrize("protocol", PROTOCOLS)
every_way = pytest.mark.parametrize(
    ("stream", "is_async"), [(s, a) for s in (True, False) for a in (True, False)]
)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with scripted_server() as running:
        yield running


def calling(*calls: tuple[str, str], stop: str = "tool_use", cut: bool = False) -> Scenario:
    """An answer that calls tools, the arguments in fragments of four characters."""
    return Scenario(
        tuple(
            ToolCall(name, tuple(raw[at : at + 4] for at in range(0, len(raw), 4)), cut=cut)
            for name, raw in calls
        ),
        stop,
    )


class Bench:
    """A loop for one protocol, and the answers that the model will give."""

    def __init__(
        self, server: ScriptedServer, protocol: str, *, stream: bool, is_async: bool, **options: Any
    ) -> None:
        self.server = server
        self.protocol = protocol
        self.stream = stream
        self.is_async = is_async
        self.seen: list[Any] = []
        self.client = client(protocol, server.url, is_async=is_async)
        self.loop = ToolLoop(
            self.client,
            protocol=protocol,
            stream=stream,
            on_call=self.seen.append,
            **SETTINGS[protocol],
            **options,
        )

    def says(self, *turns: Scenario) -> None:
        for turn in turns:
            renderer = RENDERERS[self.protocol]
            self.server.script(renderer.stream(turn) if self.stream else renderer.whole(turn))

    def run(self, messages: Any = "go") -> Run:
        return asyncio.run(self._arun(messages)) if self.is_async else self._run(messages)

    def _run(self, messages: Any) -> Run:
        try:
            return self.loop.run(messages)
        finally:
            self.client.close()

    async def _arun(self, messages: Any) -> Run:
        try:
            return await self.loop.arun(messages)
        finally:
            await close(self.client)

    def results(self, request: int) -> list[tuple[str, str, bool]]:
        """The tool results at the end of a request: id, text, is it an error."""
        return list(_results(self.protocol, self.server.asked[request].body))

    def ids(self, count: int) -> list[str]:
        given = RENDERERS[self.protocol].CALL_IDS[:count]
        return [""] if self.protocol == GEMINI and count == 1 else given


def _results(protocol: str, body: Json) -> Iterator[tuple[str, str, bool]]:
    match protocol:
        case "anthropic":
            for block in body["messages"][-1]["content"]:
                yield block["tool_use_id"], block["content"], block.get("is_error", False)
        case "openai-chat":
            for message in body["messages"]:
                if message["role"] == "tool":
                    yield message["tool_call_id"], *_unmarked(message["content"])
        case "openai-responses":
            for item in body["input"]:
                if item.get("type") == "function_call_output":
                    yield item["call_id"], *_unmarked(item["output"])
        case _:
            for part in body["contents"][-1]["parts"]:
                response = part["functionResponse"]
                ((kind, text),) = response["response"].items()
                yield response.get("id", ""), text, kind == "error"


def _unmarked(text: str) -> tuple[str, bool]:
    return text.removeprefix("Error: "), text.startswith("Error: ")


def get_weather(city: str, unit: str = "celsius") -> str:
    """Current weather for a city."""
    return f"18 {unit} in {city}"


@every_protocol
@every_way
def test_a_call_in_fragments_is_run_and_answered(
    server: ScriptedServer, protocol: str, stream: bool, is_async: bool
) -> None:
    bench = Bench(server, protocol, stream=stream, is_async=is_async, tools=[get_weather])
    bench.says(calling(("get_weather", '{"city": "Paris"}')), DONE)
    run = bench.run("Weather?")
    assert (run.text, run.ended, len(run.steps)) == ("All done.", "done", 2)
    assert bench.results(1) == [(bench.ids(1)[0], "18 celsius in Paris", False)]
    assert isinstance(bench.seen[-1], CompleteCall)
    assert any(isinstance(call, PartialCall) for call in bench.seen)
    declared = compact(server.asked[0].body["tools"])
    assert '"city"' in declared
    assert "Current weather for a city." in declared


@every_protocol
@every_way
def test_a_misnamed_parameter_is_mended(
    server: ScriptedServer, protocol: str, stream: bool, is_async: bool
) -> None:
    def read_file(file_path: str) -> str:
        return f"text of {file_path}"

    bench = Bench(server, protocol, stream=stream, is_async=is_async, tools=[read_file])
    bench.says(calling(("read_file", '{"filePath": "a.py"}')), DONE)
    run = bench.run()
    (answer,) = run.steps[0].answers
    assert (answer.text, answer.is_error) == ("text of a.py", False)
    assert [fix.path for fix in answer.call.mended] == ["/filePath"]
    # The history keeps the model's own arguments.
    assert "filePath" in compact(server.asked[1].body)


@pytest.mark.parametrize("protocol", [ANTHROPIC, CHAT, RESPONSES])
@pytest.mark.parametrize("is_async", [True, False])
def test_a_cut_call_is_never_run(server: ScriptedServer, protocol: str, is_async: bool) -> None:
    ran: list[str] = []

    def write(path: str, text: str = "") -> None:
        ran.append(path)

    bench = Bench(server, protocol, stream=True, is_async=is_async, tools=[write])
    bench.says(calling(("write", '{"path": "a", "text": "half'), stop="max_tokens", cut=True), DONE)
    run = bench.run()
    (answer,) = run.steps[0].answers
    assert isinstance(answer.call, FailedCall)
    assert ran == []
    ((id, text, is_error),) = bench.results(1)
    assert (id, is_error) == (bench.ids(1)[0], True)
    assert "not run" in text
    # The provider must be able to parse the history, even if the model's own call was broken.
    assert '"half' not in compact(server.asked[1].body)


@pytest.mark.parametrize("protocol", [ANTHROPIC, CHAT, RESPONSES])
def test_a_cut_answer_runs_no_tool(server: ScriptedServer, protocol: str) -> None:
    ran: list[str] = []

    def write(path: str) -> None:
        ran.append(path)

    bench = Bench(server, protocol, stream=True, is_async=False, tools=[write])
    whole = RENDERERS[protocol].stream(calling(("write", '{"path": "a"}'), ("write", '{"path": "b"}')))
    server.script(whole[: int(len(whole) * 0.6)])
    run = bench.run()
    assert run.ended == "failed"
    assert run.failure is not None
    assert ran == []
    assert run.messages == [{"role": "user", "content": "go"}]


@every_protocol
@pytest.mark.parametrize("is_async", [False, True])
def test_cut_connection_ends_the_run_with_the_steps_so_far(
    server: ScriptedServer, protocol: str, is_async: bool
) -> None:
    ran: list[str] = []

    def write(path: str) -> None:
        ran.append(path)

    bench = Bench(server, protocol, stream=True, is_async=is_async, tools=[write])
    bench.says(calling(("write", '{"path": "a"}')))
    second = RENDERERS[protocol].stream(calling(("write", '{"path": "b"}')))
    server.script(second[: len(second) // 2])
    server.cut_after = 1
    run = bench.run()
    assert (run.ended, len(run.steps), ran) == ("failed", 2, ["a"])
    assert run.failure is not None
    assert run.failure.message.startswith("the model's answer broke off: ")


def test_an_error_in_the_stream_has_the_message_of_the_provider(server: ScriptedServer) -> None:
    bench = Bench(server, ANTHROPIC, stream=True, is_async=False, tools=[])
    begun = RENDERERS[ANTHROPIC].stream(calling(("write", "{}")))
    error = (
        b'event: error\ndata: {"type": "error", "error": {"type": "api_error", "message": "Out of luck"}}\n\n'
    )
    server.script(begun[: begun.index(b"event: content_block_stop")] + error)
    run = bench.run()
    assert run.failure is not None
    assert run.failure.message == "the model's answer broke off: Out of luck"


def test_exception_of_the_callers_own_code_passes(server: ScriptedServer) -> None:
    def refuse(call: object) -> None:
        raise LookupError("of the caller")

    loop = ToolLoop(client(CHAT, server.url), stream=True, model="m", on_call=refuse)
    server.script(samples_chat.stream(calling(("write", "{}"))))
    with pytest.raises(LookupError, match="of the caller"):
        loop.run("x")


@every_protocol
@every_way
def test_invalid_arguments_are_explained_and_corrected(
    server: ScriptedServer, protocol: str, stream: bool, is_async: bool
) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    bench = Bench(server, protocol, stream=stream, is_async=is_async, tools=[add])
    wrong, right = calling(("add", '{"a": 1, "b": "two"}')), calling(("add", '{"a": 1, "b": 2}'))
    bench.says(wrong, right, DONE)
    run = bench.run()
    first, second = run.steps[0].answers[0], run.steps[1].answers[0]
    assert (first.is_error, first.refused) == (True, True)
    assert "/b" in first.text
    assert '"two"' in first.text
    assert bench.results(1)[0][2] is True
    assert (second.text, second.value) == ("3", 3)
    assert run.ended == "done"


@every_protocol
@every_way
def test_parallel_calls_are_answered_in_order(
    server: ScriptedServer, protocol: str, stream: bool, is_async: bool
) -> None:
    def slow(n: int) -> int:
        time.sleep(0.02 * (3 - n))
        return n

    bench = Bench(server, protocol, stream=stream, is_async=is_async, tools=[slow])
    bench.says(calling(*(("slow", f'{{"n": {n}}}') for n in range(3))), DONE)
    bench.run()
    assert bench.results(1) == [(id, str(n), False) for n, id in enumerate(bench.ids(3))]


@every_protocol
def test_identical_repeats_are_bounded(server: ScriptedServer, protocol: str) -> None:
    bench = Bench(server, protocol, stream=True, is_async=False, tools=[get_weather], max_repeats=3)
    bench.says(*[calling(("get_weather", '{"city": "Paris"}'))] * 5)
    run = bench.run()
    assert (run.ended, len(run.steps), len(server.asked)) == ("repeats", 3, 3)


@every_protocol
def test_turns_and_attempts_are_bounded(server: ScriptedServer, protocol: str) -> None:
    bench = Bench(server, protocol, stream=True, is_async=False, tools=[get_weather], max_turns=2)
    bench.says(*(calling(("get_weather", f'{{"city": "{n}"}}')) for n in range(3)))
    assert bench.run().ended == "turns"
    server.replies.clear()
    bench = Bench(server, protocol, stream=True, is_async=False, tools=[get_weather], max_attempts=2)
    bench.says(*(calling(("get_weather", f'{{"unit": "{n}"}}')) for n in range(3)))
    run = bench.run()
    assert (run.ended, len(run.steps)) == ("attempts", 2)


@every_protocol
@every_way
def test_an_exception_of_a_tool_is_an_error_result(
    server: ScriptedServer, protocol: str, stream: bool, is_async: bool
) -> None:
    def fail(path: str) -> str:
        raise FileNotFoundError(f"no file {path}\nat all")

    bench = Bench(server, protocol, stream=stream, is_async=is_async, tools=[fail])
    bench.says(calling(("fail", '{"path": "x"}')), DONE)
    run = bench.run()
    assert bench.results(1) == [(bench.ids(1)[0], "FileNotFoundError: no file x at all", True)]
    assert run.ended == "done"


@every_protocol
def test_an_unknown_tool_gets_an_error_result(server: ScriptedServer, protocol: str) -> None:
    bench = Bench(server, protocol, stream=False, is_async=False, tools=[get_weather])
    bench.says(calling(("get_wether", '{"city": "Paris"}')), DONE)
    bench.run()
    ((_, text, is_error),) = bench.results(1)
    assert is_error
    assert "get_wether" in text
    assert "get_weather" in text


@every_protocol
def test_two_equal_calls_are_both_run_and_answered(server: ScriptedServer, protocol: str) -> None:
    ran: list[str] = []

    def press(button: str) -> str:
        ran.append(button)
        return "ok"

    bench = Bench(server, protocol, stream=True, is_async=False, tools=[press])
    bench.says(calling(("press", '{"button": "red"}'), ("press", '{"button": "red"}')), DONE)
    run = bench.run()
    assert ran == ["red", "red"]
    assert [id for id, _, _ in bench.results(1)] == bench.ids(2)
    assert run.ended == "done"


def test_an_async_tool_has_a_deadline(server: ScriptedServer) -> None:
    async def wait() -> str:
        await asyncio.sleep(60)
        return "never"

    bench = Bench(server, ANTHROPIC, stream=True, is_async=True, tools=[wait], tool_timeout=0.05)
    bench.says(calling(("wait", "{}")), DONE)
    run = bench.run()
    (answer,) = run.steps[0].answers
    assert answer.is_error
    assert "0.05 seconds" in answer.text


def test_async_tools_run_at_the_same_time(server: ScriptedServer) -> None:
    met = asyncio.Event()

    async def first() -> str:
        await met.wait()
        return "met"

    async def second() -> str:
        met.set()
        return "came"

    bench = Bench(server, CHAT, stream=True, is_async=True, tools=[first, second], tool_timeout=5)
    bench.says(calling(("first", "{}"), ("second", "{}")), DONE)
    assert [answer.text for answer in bench.run().steps[0].answers] == ["met", "came"]


# The history.


def thinking_then_calling() -> Scenario:
    thought = Thinking(("I need ", "the weather."), SIGNATURE)
    return Scenario(
        (thought, Text(("Let me ", "look.")), ToolCall("get_weather", ('{"city"', ': "Paris"}'))), "tool_use"
    )


@every_protocol
@every_way
def test_a_turn_goes_back_as_the_provider_gave_it(
    server: ScriptedServer, protocol: str, stream: bool, is_async: bool
) -> None:
    bench = Bench(server, protocol, stream=stream, is_async=is_async, tools=[get_weather])
    turn = thinking_then_calling()
    bench.says(turn, DONE)
    bench.run()
    came, body = RENDERERS[protocol].whole(turn), server.asked[1].body
    answer = json.loads(came)
    match protocol:
        case "anthropic":
            assert body["messages"][1] == {"role": "assistant", "content": answer["content"]}
        case "openai-chat":
            want = {k: v for k, v in answer["choices"][0]["message"].items() if v and k != "annotations"}
            assert {k: v for k, v in body["messages"][1].items() if v} == want
        case "openai-responses":
            assert body["input"][1:-1] == answer["output"]
        case _:
            said = body["contents"][1]
            assert (
                "".join(part.get("text", "") for part in said["parts"] if not part.get("thought"))
                == "Let me look."
            )
            (called,) = [part for part in said["parts"] if "functionCall" in part]
            assert called["thoughtSignature"] == SIGNATURE
            assert called["functionCall"]["args"] == {"city": "Paris"}


def test_a_run_can_be_continued(server: ScriptedServer) -> None:
    bench = Bench(server, ANTHROPIC, stream=True, is_async=False, tools=[get_weather])
    bench.says(calling(("get_weather", '{"city": "Paris"}')), DONE, DONE)
    loop, asked = bench.loop, {"role": "user", "content": "And Rome?"}
    run = loop.run("Weather?")
    again = loop.run([*run.messages, asked])
    assert again.messages[:5] == [*run.messages, asked]
    assert [message["role"] for message in again.messages] == ["user", "assistant"] * 3
    bench.client.close()


def test_steps_can_be_iterated(server: ScriptedServer) -> None:
    bench = Bench(server, CHAT, stream=False, is_async=False, tools=[get_weather])
    bench.says(calling(("get_weather", '{"city": "Paris"}')), DONE)
    steps = bench.loop.steps("Weather?")
    assert [call.name for call in next(steps).calls] == ["get_weather"]
    assert len(server.asked) == 1
    assert next(steps).text == "All done."
    bench.client.close()


def test_a_call_written_as_text_is_run_and_answered_as_text(server: ScriptedServer) -> None:
    leaked = '<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}</tool_call>'
    bench = Bench(server, CHAT, stream=True, is_async=False, tools=[get_weather])
    bench.says(Scenario((Text((leaked[:9], leaked[9:])),), "end_turn"), DONE)
    run = bench.run()
    assert run.steps[0].calls[0].recovered
    last = server.asked[1].body["messages"][-1]
    assert last == {"role": "user", "content": "Result of get_weather: 18 celsius in Paris"}


@every_protocol
def test_the_callers_own_tools_and_settings_stay(server: ScriptedServer, protocol: str) -> None:
    own: dict[str, Json] = {
        ANTHROPIC: {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        CHAT: {"tools": [{"type": "custom", "custom": {"name": "patch"}}]},
        RESPONSES: {"tools": [{"type": "web_search"}]},
        GEMINI: {"config": {"tools": [{"google_search": {}}], "temperature": 0.5}},
    }
    bench = Bench(server, protocol, stream=False, is_async=False, tools=[get_weather])
    bench.says(DONE)
    bench.loop.run("hi", **own[protocol])
    assert len(server.asked[0].body["tools"]) == 2
    bench.client.close()


# Misuse.


def test_misuse_raises_a_clear_error(server: ScriptedServer) -> None:
    async def later() -> None: ...

    loop = ToolLoop(client(CHAT, server.url), model="m", tools=[later])
    with pytest.raises(TypeError, match="use `arun`: these tools are async functions: later"):
        loop.run("x")
    with pytest.raises(ValueError, match="already"):
        loop.tool(later)
    with pytest.raises(ValueError, match="not a valid tool name"):
        loop.tool(name="no spaces please")(get_weather)
    stranger: Any = object()
    with pytest.raises(ValueError, match="give ToolLoop protocol="):
        ToolLoop(stranger)
    with pytest.raises(ValueError, match="unknown protocol 'smoke'"):
        ToolLoop(stranger, protocol="smoke")


@every_protocol
def test_misspelt_option_is_named_at_once(server: ScriptedServer, protocol: str) -> None:
    sdk = client(protocol, server.url)
    loop = ToolLoop(sdk, protocol=protocol, **SETTINGS[protocol])
    with pytest.raises(TypeError, match=r"no option 'max_turn'; did you mean max_turns\?"):
        ToolLoop(sdk, protocol=protocol, max_turn=3, **SETTINGS[protocol])
    with pytest.raises(TypeError, match=r"no option 'modell'; did you mean model\?"):
        loop.run("x", modell="m")
    with pytest.raises(TypeError, match=r"no option 'zebra'$"):
        loop.steps("x", zebra=1)
    assert server.asked == []


def test_misspelt_rule_is_named_at_once() -> None:
    with pytest.raises(DragomanError, match="there is no rule 'trailing'"):
        ToolLoop(rules_off=["trailing"])


def test_client_with_open_keywords_takes_any_name_but_a_near_miss() -> None:
    class Messages:
        def create(self, **request: Any) -> Any: ...

    class Client:
        messages = Messages()

    ToolLoop(Client(), protocol=ANTHROPIC, zebra=1)
    with pytest.raises(TypeError, match=r"did you mean max_turns\?"):
        ToolLoop(Client(), protocol=ANTHROPIC, max_turn=1)


def test_the_wrong_kind_of_client_raises_a_clear_error(server: ScriptedServer) -> None:
    loop = ToolLoop(client(CHAT, server.url, is_async=True), model="m")
    with pytest.raises(TypeError, match="not async"):
        loop.run("x")


# Special cases of a history.


def sse(*events: Json) -> bytes:
    named = [f"event: {event['type']}\n" if "type" in event else "" for event in events]
    return "".join(
        f"{name}data: {compact(event)}\n\n" for name, event in zip(named, events, strict=True)
    ).encode()


def test_a_paused_turn_is_resumed(server: ScriptedServer) -> None:
    bench = Bench(server, ANTHROPIC, stream=False, is_async=False)
    paused = json.loads(samples_anthropic.whole(DONE) or b"") | {"stop_reason": "pause_turn"}
    server.script(compact(paused).encode())
    bench.says(DONE)
    run = bench.run()
    assert (run.ended, len(run.steps)) == ("done", 2)
    assert server.asked[1].body["messages"][-1]["role"] == "assistant"


def test_chat_keeps_signatures_and_reasoning_details(server: ScriptedServer) -> None:
    signature = {"google": {"thought_signature": SIGNATURE}}
    call = {"index": 0, "id": "call_1", "type": "function", "extra_content": signature}
    named = call | {"function": {"name": "get_weather", "arguments": '{"city": '}}
    rest = {"index": 0, "function": {"arguments": '"Paris"}'}}
    details = [{"type": "reasoning.encrypted", "data": "x"}]
    deltas: list[Json] = [{"tool_calls": [named]}, {"tool_calls": [rest]}, {"reasoning_details": details}]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    bench = Bench(server, CHAT, stream=True, is_async=False, tools=[get_weather])
    server.script(sse(*chunks, end))
    bench.says(DONE)
    bench.run()
    said = server.asked[1].body["messages"][1]
    assert said["reasoning_details"] == details
    assert said["tool_calls"] == [
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'},
            "extra_content": signature,
        }
    ]


def test_a_response_that_ends_without_its_output_is_kept(server: ScriptedServer) -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather"}
    item |= {"arguments": '{"city": "Paris"}', "status": "completed"}
    bench = Bench(server, RESPONSES, stream=True, is_async=False, tools=[get_weather])
    server.script(
        sse(
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"status": "completed", "output": []}},
        )
    )
    bench.says(DONE)
    bench.run()
    assert server.asked[1].body["input"][1] == item
    assert bench.results(1) == [("call_1", "18 celsius in Paris", False)]


def test_a_gemini_call_in_pieces_goes_back_as_one(server: ScriptedServer) -> None:
    parts: list[Json] = [
        {"functionCall": {"name": "get_weather", "willContinue": True}, "thoughtSignature": SIGNATURE},
        {"functionCall": {"args": {"city": "Paris"}}},
        {"text": ""},
    ]
    chunks = [{"candidates": [{"content": {"role": "model", "parts": [part]}}]} for part in parts]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    bench = Bench(server, GEMINI, stream=True, is_async=False, tools=[get_weather])
    server.script(sse(*chunks))
    bench.says(DONE)
    bench.run()
    assert server.asked[1].body["contents"][1]["parts"] == [
        {
            "functionCall": {"name": "get_weather", "args": {"city": "Paris"}},
            "thoughtSignature": SIGNATURE,
        }
    ]


def test_arguments_that_cannot_be_read_go_back_mended(server: ScriptedServer) -> None:
    bench = Bench(server, CHAT, stream=False, is_async=False, tools=[get_weather])
    bench.says(calling(("get_weather", "{'city': 'Paris',}")), DONE)
    bench.run()
    (call,) = server.asked[1].body["messages"][1]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"city": "Paris"}
