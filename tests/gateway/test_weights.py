"""Weighted routes distribute conversations: every turn goes to the target of the first."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from support.gateways import Gateway, Loop, gateway
from support.plain_http import post
from support.scripted_upstream import ScriptedUpstream, in_background, status

from dragoman.gateway.conversation import conversation_of
from dragoman.protocols.registry import CLIENTS

Json = dict[str, Any]


@pytest.fixture
def one() -> Iterator[ScriptedUpstream]:
    with in_background() as served:
        yield served


@pytest.fixture
def two() -> Iterator[ScriptedUpstream]:
    with in_background() as served:
        yield served


@pytest.fixture
def shared(loop: Loop, one: ScriptedUpstream, two: ScriptedUpstream) -> Iterator[Gateway]:
    """A gateway with weights 3 to 1 for `one`. Its random numbers alone would choose `two`."""
    named = {"one": one.url, "two": two.url}
    config = "".join(
        f'[upstreams.{name}]\nprotocol = "openai-chat"\nbase_url = "{url}"\ncredential = "none"\n'
        for name, url in named.items()
    )
    weights = '{ target = "one/m", weight = 3 }, { target = "two/m", weight = 1 }'
    config += f'[[routes]]\nmatch = "*"\nto = [{weights}]\n'
    with gateway(config, loop) as served:
        served.state.upstreams.random = lambda: 0.99
        yield served


def _anthropic(words: list[str], prompt: str) -> Json:
    said = [{"type": "text", "text": word} for word in words]
    said[-1]["cache_control"] = {"type": "ephemeral"}  # agents move the cache mark with every turn
    messages = [{"role": ("user", "assistant")[at % 2], "content": [part]} for at, part in enumerate(said)]
    return {"model": "x", "max_tokens": 9, "system": prompt, "messages": messages}


def _chat(words: list[str], prompt: str) -> Json:
    messages = [{"role": ("user", "assistant")[at % 2], "content": word} for at, word in enumerate(words)]
    return {"model": "x", "messages": [{"role": "system", "content": prompt}, *messages]}


def _responses(words: list[str], prompt: str) -> Json:
    said = [{"role": ("user", "assistant")[at % 2], "content": word} for at, word in enumerate(words)]
    return {"model": "x", "input": [{"role": "developer", "content": prompt}, *said], "store": False}


def _gemini(words: list[str], prompt: str) -> Json:
    said = [{"role": ("user", "model")[at % 2], "parts": [{"text": word}]} for at, word in enumerate(words)]
    return {"systemInstruction": {"parts": [{"text": prompt}]}, "contents": said}


ASKERS: dict[str, tuple[str, Callable[[list[str], str], Json]]] = {
    "anthropic": ("/v1/messages", _anthropic),
    "openai-chat": ("/v1/chat/completions", _chat),
    "openai-responses": ("/v1/responses", _responses),
    "gemini": ("/v1beta/models/x:generateContent", _gemini),
}


def turns(opening: str, count: int) -> Iterator[list[str]]:
    """The messages of a conversation, turn by turn."""
    for turn in range(count):
        yield [opening, *(f"word {at}" for at in range(2 * turn))]


@pytest.mark.parametrize("client", ASKERS)
def test_every_turn_goes_to_the_target_of_the_first(
    client: str, shared: Gateway, one: ScriptedUpstream, two: ScriptedUpstream
) -> None:
    path, body = ASKERS[client]
    met: list[int] = []
    for number in range(12):
        before = len(one.seen), len(two.seen)
        for turn, words in enumerate(turns(f"task {number}", 3)):
            # A system prompt with the current time does not make another conversation.
            assert post(shared.url + path, body(words, f"It is {turn} o'clock.")).status == 200
        asked = len(one.seen) - before[0], len(two.seen) - before[1]
        assert asked in {(3, 0), (0, 3)}
        met.append(asked[0])
    assert set(met) == {0, 3}, "all conversations went to the same target"


def test_conversations_are_distributed_by_weight(shared: Gateway) -> None:
    first = [_first(shared, f"task {number}") for number in range(2000)]
    assert 1420 < first.count("one") < 1580


@pytest.mark.parametrize(
    "header",
    ["x_session_id", "x_session_affinity", "x_claude_code_session_id", "session_id"],
)
def test_the_clients_session_id_comes_first(
    header: str, shared: Gateway, one: ScriptedUpstream, two: ScriptedUpstream
) -> None:
    for session in range(8):
        before = len(one.seen)
        for words in ("one thing", "another", "a third"):
            body = _chat([f"{words} {session}"], "")
            assert post(f"{shared.url}/v1/chat/completions", body, **{header: f"s{session}"}).status == 200
        assert len(one.seen) - before in {0, 3}
    assert one.seen
    assert two.seen


def test_a_prompt_cache_key_identifies_a_conversation(
    shared: Gateway, one: ScriptedUpstream, two: ScriptedUpstream
) -> None:
    for key in range(8):
        before = len(one.seen)
        for words in ("one thing", "another", "a third"):
            body = _chat([f"{words} {key}"], "") | {"prompt_cache_key": f"k{key}"}
            assert post(f"{shared.url}/v1/chat/completions", body).status == 200
        assert len(one.seen) - before in {0, 3}
    assert one.seen
    assert two.seen


def test_a_continued_response_keeps_its_target(
    shared: Gateway, one: ScriptedUpstream, two: ScriptedUpstream
) -> None:
    for number in range(8):
        last = post(f"{shared.url}/v1/responses", {"model": "x", "input": f"task {number}"}).json["id"]
        before = len(one.seen)
        for turn in range(3):
            body = {"model": "x", "input": f"go on {turn}", "previous_response_id": last}
            last = post(f"{shared.url}/v1/responses", body).json["id"]
        assert len(one.seen) - before in {0, 3}
    assert one.seen
    assert two.seen


def test_a_request_without_a_conversation_is_random(shared: Gateway, two: ScriptedUpstream) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    for _ in range(3):
        body = {"model": "x", "messages": [{"role": "user", "content": [picture]}]}
        assert post(f"{shared.url}/v1/chat/completions", body).status == 200
    assert len(two.seen) == 3


def test_a_failing_target_falls_back_to_the_other(
    shared: Gateway, one: ScriptedUpstream, two: ScriptedUpstream
) -> None:
    here = next(n for n in range(20) if _first(shared, f"task {n}") == "one")
    one.script(status(404))
    assert post(f"{shared.url}/v1/chat/completions", _chat([f"task {here}"], "")).status == 200
    assert (len(one.seen), len(two.seen)) == (1, 1)


def _first(shared: Gateway, opening: str) -> str:
    body = msgspec.json.encode(_chat([opening], ""))
    request = CLIENTS["openai-chat"].read_request(body, "/v1/chat/completions")
    return shared.state.upstreams.choices("x", lambda: conversation_of(request, ""))[0].upstream.name
