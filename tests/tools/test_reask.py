"""`invalid = "reask"`: the client never gets the invalid call, and its usage counts both turns."""

import msgspec
import pytest
from support import oracle
from support.exchanges import SEED, declared
from support.sample_streams import TOOLS

from dragoman.config.providers import providers
from dragoman.conform import laws, neutral
from dragoman.model.messages import Message, Request, Text, ToolCall, ToolResult
from dragoman.protocols.base import Target
from dragoman.protocols.registry import PROTOCOLS
from dragoman.tools.reask import forced
from dragoman.translation.translation import Options, Translation

ASKED = Request(model="m", messages=(Message("user", (Text("weather?"),)),), tools=declared(TOOLS))
BAD = '{"city": "Rome", "unit": "kelvin"}'
GOOD = '{"city": "Rome", "unit": "celsius"}'


def answer(*calls: tuple[str, str], text: str = "", finish: str = "tool_calls") -> bytes:
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    deltas: list[dict[str, object]] = [{"role": "assistant", "content": text}]
    for index, (name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": arguments}
        call = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
        deltas.append({"tool_calls": [call]})
    frames = [head | {"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    frames.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    frames.append(head | {"choices": [], "usage": usage})
    return b"".join(b"data: " + msgspec.json.encode(f) + b"\n\n" for f in frames) + b"data: [DONE]\n\n"


def asking(client: str, *, stream: bool = True, attempts: int = 2) -> Translation:
    options = Options(id=SEED, stream=stream, invalid="reask", reask_attempts=attempts)
    return Translation("openai-chat", client, tools=declared(TOOLS), options=options)


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_the_client_gets_one_valid_answer(client: str, stream: bool) -> None:
    it = asking(client, stream=stream)
    got = it.feed(answer(("get_weather", BAD), text="Let me see.")) + it.close()
    assert it.rejected
    assert not it.over
    again = it.again(ASKED)
    got += it.feed(answer(("get_weather", GOOD))) + it.close()
    assert it.over
    assert laws.check(client, got, stream=stream) == []
    for said in (neutral.reduce(client, got, stream=stream), oracle.parse(client, got, stream=stream)):
        assert said["text"] == "Let me see."
        assert [call["arguments"] for call in said["tool_calls"]] == [{"city": "Rome", "unit": "celsius"}]
        assert said["stop"] == "tool_use"
        assert (said["usage"]["input"], said["usage"]["output"]) == (20, 10)
    assert [receipt.dropped for receipt in it.receipts] == ["reasked", None]
    assert isinstance(again, Request)


def test_the_reask_explains_the_error_to_the_model() -> None:
    it = asking("anthropic")
    it.feed(answer(("get_weather", BAD), ("read_file", '{"path": "a"}')))
    it.close()
    turn, results = it.again(ASKED).messages[-2:]
    calls = [part for part in turn.parts if isinstance(part, ToolCall)]
    assert [(call.id, call.arguments) for call in calls] == [("call_0", BAD), ("call_1", '{"path": "a"}')]
    wrong, fine = (part for part in results.parts if isinstance(part, ToolResult))
    assert wrong.is_error
    assert "kelvin" in wrong.parts[0].text
    assert "not run" in fine.parts[0].text


@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_the_reask_can_be_written_for_every_upstream(upstream: str) -> None:
    it = asking("openai-chat")
    it.feed(answer(("get_weather", BAD)))
    it.close()
    body = PROTOCOLS[upstream].write_request(it.again(ASKED), Target(model="m")).body
    assert b"kelvin" in msgspec.json.encode(body)


def test_the_reask_lists_the_offered_tools() -> None:
    it = asking("openai-chat")
    it.feed(answer(("get_wether_now", BAD)))
    it.close()
    told = it.again(ASKED).messages[-1].parts[0]
    assert isinstance(told, ToolResult)
    assert "not offered" in told.parts[0].text
    assert all(tool.name in told.parts[0].text for tool in ASKED.tools)


@pytest.mark.parametrize(
    ("calls", "mode"),
    [
        ([("get_weather", BAD)], "named"),
        ([("get_weather", BAD), ("read_file", '{"path": "a"}')], "required"),
        ([("invent", "{}")], "required"),
    ],
)
def test_the_reask_forces_the_call(calls: list[tuple[str, str]], mode: str) -> None:
    it = asking("openai-chat")
    it.feed(answer(*calls))
    it.close()
    rejected = it.rejected
    request, notice = forced(it.again(ASKED), rejected, by_schema=False)
    choice = request.settings.tool_choice
    assert choice is not None
    assert (choice.mode, choice.name) == (mode, "get_weather" if mode == "named" else None)
    assert "forced by tool_choice" in notice.message
    assert request.tools == ASKED.tools


def test_a_server_that_decodes_by_schema_gets_strict_tools() -> None:
    it = asking("openai-chat")
    it.feed(answer(("get_weather", BAD)))
    it.close()
    rejected = it.rejected
    request, notice = forced(it.again(ASKED), rejected, by_schema=True)
    assert {tool.name: tool.strict for tool in request.tools}["get_weather"] is True
    assert "by its schema" in notice.message
    body = msgspec.json.encode(PROTOCOLS["openai-chat"].write_request(request, Target(model="m")).body)
    assert b'"tool_choice":{"type":"function","function":{"name":"get_weather"}}' in body


def test_after_a_call_of_no_tool_every_tool_is_strict() -> None:
    """The model may call any tool next, and the server decodes that call by its schema."""
    it = asking("openai-chat")
    it.feed(answer(("look_up", GOOD)))
    it.close()
    rejected = it.rejected
    request, _ = forced(it.again(ASKED), rejected, by_schema=True)
    assert {tool.strict for tool in request.tools if tool.kind == "function"} == {True}
    choice = request.settings.tool_choice
    assert choice is not None
    assert choice.mode == "required"


def test_a_server_that_ignores_named_tool_choice_gets_required() -> None:
    """llama.cpp reads a `tool_choice` that is not a string as `auto`."""
    it = asking("openai-chat")
    it.feed(answer(("get_weather", BAD)))
    it.close()
    provider = providers()["llamacpp"]
    rejected = it.rejected
    request, notice = forced(
        it.again(ASKED),
        rejected,
        by_schema=provider.decodes_by_schema,
        by_name=provider.takes_named_choice,
    )
    body = PROTOCOLS["openai-chat"].write_request(request, Target(model="m")).body
    assert body["tool_choice"] == "required"
    assert "for a call, forced by tool_choice" in notice.message


def test_a_valid_answer_is_not_reasked() -> None:
    it = asking("anthropic")
    it.feed(answer(("get_weather", GOOD)))
    it.close()
    assert not it.rejected
    assert it.over


def test_after_the_last_attempt_the_call_passes_unchanged() -> None:
    it = asking("openai-chat", attempts=1)
    got = it.feed(answer(("get_weather", BAD))) + it.close()
    it.again(ASKED)
    got += it.feed(answer(("get_weather", BAD))) + it.close()
    assert not it.rejected
    said = neutral.reduce("openai-chat", got, stream=True)
    assert said["tool_calls"][0]["arguments"] == {"city": "Rome", "unit": "kelvin"}
    assert it.receipts[-1].problems


def test_an_unreadable_call_is_reasked() -> None:
    it = asking("anthropic")
    it.feed(answer(("get_weather", '{"city": "Ro')))
    it.close()
    assert it.rejected[0].problems


def test_a_call_cut_by_the_token_limit_is_not_reasked() -> None:
    it = asking("anthropic")
    got = it.feed(answer(("get_weather", '{"city": "Ro'), finish="length")) + it.close()
    assert not it.rejected
    assert neutral.reduce("anthropic", got, stream=True)["stop"] == "max_tokens"


def test_invalid_error_ends_the_answer_instead() -> None:
    options = Options(id=SEED, invalid="error")
    it = Translation("openai-chat", "anthropic", tools=declared(TOOLS), options=options)
    got = it.feed(answer(("get_weather", BAD))) + it.close()
    assert it.failure is not None
    assert "get_weather" in it.failure.message
    assert neutral.reduce("anthropic", got, stream=True)["stop"] == "error"
