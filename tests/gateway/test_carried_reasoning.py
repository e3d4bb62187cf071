"""Reasoning goes back to its issuer through clients that cannot carry it, and to no other upstream."""

import asyncio
import json
from collections.abc import Coroutine, Iterable, Iterator
from typing import Any

import pytest
from support.sample_streams import SAMPLES, TOOLS
from support.scenarios import SCENARIOS

from dragoman import Options, Target, Translation, protocol
from dragoman.model.events import Event
from dragoman.model.messages import Message, Part, Request, Seal, Text, Thinking, ToolCall, ToolResult
from dragoman.protocols.common import call_ids
from dragoman.protocols.common.collect import collect
from dragoman.store import Store, StoreError, open_store
from dragoman.store.reasoning import needs_no_restore, restore, stash, stashed
from dragoman.store.reasoning_keys import ReasoningContext, lookups
from dragoman.tools.receipts import CallReceipt

MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-3-pro",
    "openai-responses": "gpt-5",
    "openai-chat": "deepseek-v4",
}
SIGNATURE = SCENARIOS["thinking_tool"].opaque()[0]
THOUGHT = "The user wants the weather in Paris, so the tool is due."
CHAT_TOOLS = [{"type": "function", "function": tool} for tool in TOOLS]
QUESTION = {"role": "user", "content": "How is the weather in Paris?"}


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


_opened: list[Store] = []


def memory() -> Store:
    _opened.append(open_store(None))
    return _opened[-1]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while _opened:
        run(_opened.pop().close())


class Gateway:
    """The gateway's path from one client to its upstreams."""

    def __init__(self, store: Store, client: str = "openai-chat", scope: str = "") -> None:
        self.store = store
        self.client = client
        self.scope = scope
        self.asked = 0

    def carriage(self, issuer: str, upstream: str = "", *, words: bool = False) -> ReasoningContext:
        same = upstream == self.client
        return ReasoningContext(
            client=self.client, issuer=issuer, scope=self.scope, wants_unsealed=words, same_protocol=same
        )

    async def ask(self, body: dict[str, Any], upstream: str, issuer: str, **facts: Any) -> dict[str, Any]:
        """The body that the upstream gets for a client's `body`."""
        request = protocol(self.client).read_request(json.dumps(body).encode(), "")
        carriage = self.carriage(issuer, upstream, words=bool(facts.get("reasoning_field")))
        if not needs_no_restore(request):
            restored = await restore(self.store, request, carriage)
            assert restored.notices == ()
            request = restored.request
        target = Target(model=MODELS[upstream], issuer=issuer, **facts)
        return protocol(upstream).write_request(request, target).body

    async def answer(
        self, body: dict[str, Any], upstream: str, issuer: str, stream: bytes, **facts: Any
    ) -> dict[str, Any]:
        """The client's whole answer body when the upstream sends `stream`."""
        request = protocol(self.client).read_request(json.dumps(body).encode(), "")
        self.asked += 1
        options = Options(stream=False, id=f"x{self.asked}", created=1, model="m", issuer=issuer)
        exchange = Translation(upstream, self.client, tools=request.tools, options=options)
        heard: list[Event] = []
        exchange.tap = heard.extend
        given = exchange.feed(stream) + exchange.close()
        carriage = self.carriage(issuer, upstream, words=bool(facts.get("reasoning_field")))
        said = collect(heard).parts
        assert await stash(self.store, request, said, carriage, exchange.receipts) == ()
        return json.loads(given)


def plain(answer: dict[str, Any]) -> dict[str, Any]:
    """A Chat answer as most agents send it back: text and calls, with re-encoded arguments."""
    message = answer["choices"][0]["message"]
    kept: dict[str, Any] = {"role": "assistant", "content": message["content"]}
    for call in message.get("tool_calls") or ():
        arguments = json.dumps(json.loads(call["function"]["arguments"]), indent=1)
        function = {"name": call["function"]["name"], "arguments": arguments}
        kept.setdefault("tool_calls", []).append({"id": call["id"], "type": "function", "function": function})
    return kept


def results(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"role": "tool", "tool_call_id": call["id"], "content": "rain"}
        for call in message.get("tool_calls", ())
    ]


def chat(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"model": "m", "messages": [QUESTION, *messages], "tools": CHAT_TOOLS}


async def two_turns(gateway: Gateway, upstream: str, kind: str, **facts: Any) -> dict[str, Any]:
    """The upstream's second request when a plain Chat client continues from its answer."""
    answer = await gateway.answer(chat(), upstream, "up", SAMPLES[upstream][kind].stream, **facts)
    message = plain(answer)
    return await gateway.ask(chat(message, *results(message)), upstream, "up", **facts)


def test_an_anthropic_turn_comes_back_with_its_signature() -> None:
    body = run(two_turns(Gateway(memory()), "anthropic", "thinking_tool"))
    thinking, text, call = body["messages"][1]["content"]
    assert thinking == {"type": "thinking", "thinking": THOUGHT, "signature": SIGNATURE}
    assert text == {"type": "text", "text": "I will check."}
    assert call["type"] == "tool_use"
    assert call["input"] == {"city": "Paris", "unit": "celsius"}
    assert body["messages"][2]["content"][0]["tool_use_id"] == call["id"]


def test_a_gemini_3_call_comes_back_with_its_signature() -> None:
    body = run(two_turns(Gateway(memory()), "gemini", "thinking_tool"))
    parts = body["contents"][1]["parts"]
    call = next(part for part in parts if "functionCall" in part)
    assert call["thoughtSignature"] == SIGNATURE
    assert sum("thoughtSignature" in part for part in parts) == 1


def test_a_responses_turn_comes_back_with_its_encrypted_content() -> None:
    body = run(two_turns(Gateway(memory()), "openai-responses", "thinking_tool"))
    kinds = [item["type"] for item in body["input"]]
    assert kinds == ["message", "reasoning", "message", "function_call", "function_call_output"]
    assert body["input"][1]["encrypted_content"] == SIGNATURE
    assert body["input"][1]["summary"] == [{"type": "summary_text", "text": THOUGHT}]


def test_reasoning_text_without_a_seal_comes_back_only_if_the_upstream_needs_it() -> None:
    """DeepSeek and Kimi refuse a turn with calls that lacks the reasoning before them."""
    sample = two_turns(Gateway(memory()), "openai-chat", "thinking_tool", reasoning_field="reasoning_content")
    message = run(sample)["messages"][1]
    assert message["reasoning_content"] == THOUGHT
    plain_body = run(two_turns(Gateway(memory()), "openai-chat", "tool"))
    assert "reasoning_content" not in plain_body["messages"][1]


@pytest.mark.parametrize("upstream", ["anthropic", "openai-responses"])
def test_hidden_reasoning_before_text_comes_back(upstream: str) -> None:
    body = run(two_turns(Gateway(memory()), upstream, "redacted"))
    assert SCENARIOS["redacted"].opaque()[0] in json.dumps(body)


def test_a_signature_on_gemini_text_comes_back() -> None:
    body = run(two_turns(Gateway(memory()), "gemini", "usage"))
    text = [part for part in body["contents"][1]["parts"] if not part.get("thought")]
    assert text == [{"text": "Hello! How can I help you today?", "thoughtSignature": SIGNATURE}]


@pytest.mark.parametrize("upstream", ["anthropic", "gemini", "openai-responses"])
def test_no_other_issuer_gets_it(upstream: str) -> None:
    async def scenario() -> None:
        gateway = Gateway(memory())
        answer = await gateway.answer(chat(), upstream, "up", SAMPLES[upstream]["thinking_tool"].stream)
        message = plain(answer)
        body = chat(message, *results(message))
        for target in MODELS:
            assert SIGNATURE not in json.dumps(await gateway.ask(body, target, "elsewhere"))
        assert SIGNATURE in json.dumps(await gateway.ask(body, upstream, "up"))

    run(scenario())


def test_no_other_client_gets_it() -> None:
    async def scenario() -> None:
        store = memory()
        sample = SAMPLES["anthropic"]["thinking_tool"].stream
        answer = await Gateway(store, scope="#one").answer(chat(), "anthropic", "up", sample)
        message = plain(answer)
        body = chat(message, *results(message))
        asked = await Gateway(store, scope="#other").ask(body, "anthropic", "up")
        assert SIGNATURE not in json.dumps(asked)

    run(scenario())


def test_another_conversation_with_the_same_id_or_words_gets_nothing() -> None:
    async def scenario() -> None:
        gateway = Gateway(memory())
        answer = await gateway.answer(chat(), "anthropic", "up", SAMPLES["anthropic"]["thinking_tool"].stream)
        message = plain(answer)
        message["tool_calls"][0]["function"]["arguments"] = '{"city": "Rome"}'
        asked = await gateway.ask(chat(message, *results(message)), "anthropic", "up")
        assert SIGNATURE not in json.dumps(asked)
        words = await gateway.answer(chat(), "anthropic", "up", SAMPLES["anthropic"]["usage"].stream)
        other = {"model": "m", "messages": [{"role": "user", "content": "Hi"}, plain(words), QUESTION]}
        assert SIGNATURE not in json.dumps(await gateway.ask(other, "anthropic", "up"))

    run(scenario())


def test_a_client_that_echoes_everything_needs_no_restoring() -> None:
    async def scenario() -> None:
        gateway = Gateway(memory())
        answer = await gateway.answer(chat(), "anthropic", "up", SAMPLES["anthropic"]["thinking_tool"].stream)
        message = answer["choices"][0]["message"]
        body = json.dumps(chat(message, *results(message))).encode()
        request = protocol("openai-chat").read_request(body, "")
        assert (await restore(gateway.store, request, gateway.carriage("up"))).request is request

    run(scenario())


def test_the_same_history_is_the_same_bytes_turn_after_turn() -> None:
    """Prompt caches depend on this."""

    async def scenario() -> None:
        gateway = Gateway(memory())
        stream = SAMPLES["anthropic"]["thinking_tool"].stream
        message = plain(await gateway.answer(chat(), "anthropic", "up", stream))
        history = [message, *results(message)]
        first = await gateway.ask(chat(*history), "anthropic", "up")
        for _ in range(3):
            words = {"role": "assistant", "content": "It rains."}
            history += [words, {"role": "user", "content": "And now?"}]
            later = await gateway.ask(chat(*history), "anthropic", "up")
            assert later["messages"][: len(first["messages"])] == first["messages"]

    run(scenario())


def test_reasoning_between_text_and_calls_keeps_its_position() -> None:
    one, two = Seal("anthropic", "sig1", issuer="up"), Seal("anthropic", "sig2", issuer="up")
    said: list[Part] = [
        Thinking("first", one),
        Text("Let me "),
        ToolCall(id="c1", name="f", arguments="{}"),
        Thinking("second", two),
        Text("look."),
        ToolCall(id="c2", name="g", arguments='{"a":1}'),
    ]
    echoed = (Thinking("first\n\nsecond"), Text("Let me look."), said[2], said[5])
    assert restored_parts(said, echoed) == tuple(said)
    # The client changed the text: its text stays, and the reasoning stays in order.
    changed = (Text("Looking."), said[2], said[5])
    assert restored_parts(said, changed) == (said[0], Text("Looking."), said[2], said[3], said[5])
    # It sent only one of the calls.
    assert restored_parts(said, (Text("Let me look."), said[2])) == (
        *said[:4],
        Text("look."),
    )


def restored_parts(said: Iterable[Part], echoed: tuple[Part, ...]) -> tuple[Part, ...]:
    async def scenario() -> tuple[Part, ...]:
        store = memory()
        carriage = ReasoningContext(client="openai-chat", issuer="up")
        question = Message("user", (Text("?"),))
        await stash(store, Request(model="m", messages=(question,)), list(said), carriage)
        request = Request(model="m", messages=(question, Message("assistant", echoed)))
        restored = await restore(store, request, carriage)
        return restored.request.messages[1].parts

    return run(scenario())


@pytest.mark.parametrize("client", ["anthropic", "openai-responses", "gemini"])
def test_clients_that_carry_reasoning_need_no_store(client: str) -> None:
    said: list[Part] = [Thinking("t", Seal("elsewhere", "sig", issuer="up")), Text("hello")]
    # Gemini's clients need not send reasoning back: only Gemini's own seals on calls survive there.
    carriage = ReasoningContext(client=client, issuer="up", same_protocol=client == "gemini")
    assert stashed([], said, carriage, ()) == []
    request = Request(model="m", messages=(Message("user", (Text("?"),)), Message("assistant", (Text("a"),))))
    assert lookups(request.messages, carriage).keys() == []


def test_a_gemini_client_that_drops_reasoning_loses_none() -> None:
    """Gemini CLI sends calls and text back, but no reasoning. Its seals would be lost."""
    call = ToolCall(id="call_1", name="ls", arguments="{}")
    said: list[Part] = [Thinking("Look first.", Seal("anthropic", "sig", issuer="up")), call]
    question = Message("user", (Text("?"),))

    async def scenario() -> None:
        store, carriage = memory(), ReasoningContext(client="gemini", issuer="up")
        await stash(store, Request(model="m", messages=(question,)), said, carriage)
        for echoed in ((call,), tuple(said)):
            request = Request(model="m", messages=(question, Message("assistant", echoed)))
            restored = await restore(store, request, carriage)
            assert restored.request.messages[1].parts == tuple(said)

    run(scenario())


def anthropic_body(message: dict[str, Any]) -> dict[str, Any]:
    answers = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "rain"}
        for block in message["content"]
        if block["type"] == "tool_use"
    ]
    tools = [{"name": t["name"], "input_schema": t["parameters"]} for t in TOOLS]
    turn = {"role": "assistant", "content": message["content"]}
    messages = [QUESTION, turn, {"role": "user", "content": answers}]
    return {"model": "m", "max_tokens": 100, "messages": messages, "tools": tools}


def test_a_signature_of_the_client_s_own_protocol_still_goes_only_to_its_issuer() -> None:
    """Claude at two hosts: a signature of one makes the other refuse the conversation."""

    async def scenario() -> None:
        gateway = Gateway(memory(), client="anthropic")
        first = anthropic_body({"content": []})
        stream = SAMPLES["anthropic"]["thinking_tool"].stream
        answer = await gateway.answer(first, "anthropic", "one", stream)
        assert SIGNATURE in json.dumps(answer)
        body = anthropic_body(answer)
        same = await gateway.ask(body, "anthropic", "one")
        assert same["messages"] == body["messages"]  # untouched
        other = await gateway.ask(body, "anthropic", "other")
        assert SIGNATURE not in json.dumps(other)
        assert [block["type"] for block in other["messages"][1]["content"]] == ["text", "tool_use"]

    run(scenario())


def test_a_signature_in_a_new_turn_of_a_long_conversation_goes_only_to_its_issuer() -> None:
    """Nothing of this conversation is stored yet."""

    async def scenario() -> None:
        gateway = Gateway(memory(), client="anthropic")
        stream = SAMPLES["anthropic"]["thinking_tool"].stream
        body = anthropic_body(
            await gateway.answer(anthropic_body({"content": []}), "anthropic", "one", stream)
        )
        turn = body["messages"][1:]
        begun = [{"role": "user", "content": "Will it rain?" * 100}]
        for said in ("No.", "Yes."):
            begun += [{"role": "assistant", "content": said}, {"role": "user", "content": "Sure?"}]
            await gateway.ask({**body, "messages": begun}, "anthropic", "other")
        other = await gateway.ask({**body, "messages": [*begun, *turn]}, "anthropic", "other")
        assert SIGNATURE not in json.dumps(other)
        assert other["messages"][: len(begun)] == begun
        one = await gateway.ask({**body, "messages": [*begun, *turn]}, "anthropic", "one")
        assert one["messages"] == [*begun, *turn]

    run(scenario())


def test_a_seal_of_a_chat_upstream_is_found_by_its_turn() -> None:
    """The SDK merges `reasoning_details`, so they come back changed."""

    async def scenario() -> None:
        store = memory()
        question = Message("user", (Text("?"),))
        call = ToolCall(id="c1", name="f", arguments="{}")
        said: list[Part] = [Thinking("", Seal("openai-chat", "[1]", issuer="one")), call]
        one = ReasoningContext(client="openai-chat", issuer="one", same_protocol=True)
        await stash(store, Request(model="m", messages=(question,)), said, one)
        echoed = Message("assistant", (Thinking("", Seal("openai-chat", "[1, 1]")), call))
        request = Request(model="m", messages=(question, echoed))
        other = await restore(
            store, request, ReasoningContext(client="openai-chat", issuer="other", same_protocol=True)
        )
        thinking = other.request.messages[1].parts[0]
        assert isinstance(thinking, Thinking)
        assert thinking.seal == Seal("openai-chat", "[1, 1]", issuer="one")
        back = await restore(store, request, one)
        assert back.request.messages[1].parts[0] == said[0]

    run(scenario())


def test_a_shortened_id_is_restored_for_the_upstream() -> None:
    async def scenario() -> None:
        store = memory()
        upstream_id = "call/" + "ü" * 2000
        given = call_ids.for_client(upstream_id, call_ids.WORDS)
        receipt = CallReceipt(
            id=given,
            name="f",
            upstream_id=upstream_id,
            upstream_name="f",
            received="{}",
            sent="{}",
            complete=True,
        )
        question = Message("user", (Text("?"),))
        call = ToolCall(id=given, name="f", arguments="{}")
        carriage = ReasoningContext(client="anthropic", issuer="up")
        await stash(store, Request(model="m", messages=(question,)), [call], carriage, [receipt])
        result = Message("user", (ToolResult(call_id=given),))
        request = Request(model="m", messages=(question, Message("assistant", (call,)), result))
        back = (await restore(store, request, carriage)).request
        found = [part for message in back.messages[1:] for part in message.parts]
        assert [getattr(part, "id", None) or getattr(part, "call_id", None) for part in found] == [
            upstream_id
        ] * 2
        other = ReasoningContext(client="anthropic", issuer="other")
        assert (await restore(store, request, other)).request is request

    run(scenario())


class Broken:
    """A store without a file."""

    warning = None

    async def get(self, keys: Any) -> Any:
        raise StoreError("the store is damaged")

    def may_hold(self, namespace: str) -> bool:
        return True

    async def put(self, entries: Any) -> None:
        raise StoreError("the store is damaged")


def test_a_broken_store_loses_the_reasoning_but_not_the_exchange() -> None:
    async def scenario() -> None:
        store: Any = Broken()
        carriage = ReasoningContext(client="openai-chat", issuer="up")
        request = Request(model="m", messages=(Message("assistant", (Text("a"),)),))
        restored = await restore(store, request, carriage)
        assert restored.request is request
        assert [notice.rule for notice in restored.notices] == ["carried-reasoning-lost"]
        said = [Thinking("t", Seal("anthropic", "s", issuer="up"))]
        notices = await stash(store, request, said, carriage)
        assert [notice.message for notice in notices] == ["the store is damaged"]

    run(scenario())


def test_reasoning_of_a_long_conversation_comes_back_on_every_turn() -> None:
    """The client asks for no reasoning. The upstream wants that of all earlier turns in each request."""

    async def scenario() -> list[Any]:
        store = memory()
        carriage = ReasoningContext(client="anthropic", issuer="up", wants_unsealed=True, client_asked=False)
        target = Target(model="deepseek-v4", issuer="up", reasoning_field="reasoning_content")
        messages: list[Any] = [{"role": "user", "content": "A long question. " * 40}]
        told: list[Any] = []
        for number in range(12):
            body = {"model": "m", "max_tokens": 9, "messages": messages}
            request = protocol("anthropic").read_request(json.dumps(body).encode(), "")
            restored = await restore(store, request, carriage)
            told.append(protocol("openai-chat").write_request(restored.request, target).body["messages"])
            call = ToolCall(id=f"toolu_{number}", name="read", arguments='{"a": 1}')
            said = [call] if number == 3 else [Thinking(f"thought {number}"), call]
            assert await stash(store, request, said, carriage) == ()
            use = {"type": "tool_use", "id": call.id, "name": "read", "input": {"a": 1}}
            result = {"type": "tool_result", "tool_use_id": call.id, "content": f"line {number}"}
            messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        return told

    told = run(scenario())
    thoughts = [message.get("reasoning_content") for message in told[-1] if message["role"] == "assistant"]
    assert thoughts == ["" if number == 3 else f"thought {number}" for number in range(11)]
