"""`previous_response_id`, `store` and item references over any upstream."""

import asyncio
import json
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sample_streams import SAMPLES, TOOLS

from dragoman import BadRequest, Options, Target, Translation, protocol
from dragoman.protocols.openai_responses import PROTOCOL as OPENAI_RESPONSES
from dragoman.store import Retention, RetentionRule, Store, StoreError, open_store
from dragoman.store.responses import (
    Continued,
    PreviousResponseNotFound,
    expand,
    failure,
    previous,
    record,
)

CLIENT = "openai-responses"
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-3-pro",
    "openai-responses": "gpt-5",
    "openai-chat": "gpt-5",
}
RESPONSE_TOOLS = [{"type": "function", **tool} for tool in TOOLS]
Body = dict[str, Any]


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store(None)
    yield opened
    run(opened.close())


class Session:
    """A Responses client of one upstream, as the gateway serves it."""

    def __init__(
        self, store: Store, upstream: str, issuer: str = "up", native: bool = False, scope: str = ""
    ) -> None:
        self.store = store
        self.upstream = upstream
        self.issuer = issuer
        self.native = native
        self.scope = scope

    async def continued(self, body: Body) -> Continued:
        request = protocol(CLIENT).read_request(json.dumps(body).encode(), "")
        kept = await previous(self.store, request, self.scope)
        return await expand(
            self.store, request, kept, issuer=self.issuer, native=self.native, scope=self.scope
        )

    async def asked(self, body: Body) -> Body:
        """The upstream's request."""
        return self.written((await self.continued(body)).request)

    def written(self, request: Any) -> Body:
        target = Target(model=MODELS[self.upstream], issuer=self.issuer)
        return protocol(self.upstream).write_request(request, target).body

    async def answer(self, body: Body, stream: bytes, seed: str) -> bytes:
        """All bytes of the client's answer when the upstream sends `stream`."""
        continued = await self.continued(body)
        streamed = bool(body.get("stream"))
        ended: list[Body] = []
        options = Options(
            stream=streamed, id=seed, created=1, model="m", issuer=self.issuer, on_response=ended.append
        )
        exchange = Translation(self.upstream, CLIENT, tools=continued.request.tools, options=options)
        given = b""
        for at in range(0, len(stream), 700):
            given += exchange.feed(stream[at : at + 700])
            if exchange.over:
                break
        else:
            given += exchange.close()
        response = ended[0] if ended else None
        notices = await record(
            self.store, continued, response, issuer=self.issuer, native=self.native, scope=self.scope
        )
        assert notices == ()
        return given


def output(given: bytes) -> list[Body]:
    """The output items for a client: from the body, or from each item's done event."""
    if given[:1] == b"{":
        return json.loads(given)["output"]
    events = [json.loads(line[6:]) for line in given.splitlines() if line.startswith(b"data: {")]
    return [event["item"] for event in events if event["type"] == "response.output_item.done"]


def response_id(given: bytes) -> str:
    if given[:1] == b"{":
        return json.loads(given)["id"]
    return json.loads(given.splitlines()[-2][6:])["response"]["id"]


def answers(items: list[Body]) -> list[Body]:
    calls = [item for item in items if item["type"] == "function_call"]
    return [{"type": "function_call_output", "call_id": c["call_id"], "output": "rain"} for c in calls]


def question(text: str) -> list[Body]:
    return [{"role": "user", "content": [{"type": "input_text", "text": text}]}]


KINDS = ["text", "tool", "thinking_tool", "parallel", "unicode", "usage", "text_tool"]
TURNS = st.lists(st.tuples(st.sampled_from(KINDS), st.booleans(), st.text(max_size=20)), max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(MODELS)), st.sampled_from(sorted(MODELS)), TURNS, st.booleans())
def test_continuing_equals_sending_the_whole_history(
    upstream: str, last_upstream: str, turns: list[tuple[str, bool, str]], named: bool
) -> None:
    """Law 49, over every upstream, also if the last turn goes to another one."""

    async def scenario() -> None:
        store = open_store(None)
        session = Session(store, upstream)
        history: list[Body] = []
        new: Any = question("begin")
        id: str | None = None
        for number, (kind, streamed, text) in enumerate(turns):
            body: Body = {"model": "m", "input": new, "tools": RESPONSE_TOOLS, "stream": streamed}
            body["instructions"] = f"only for turn {number}"
            if id is not None:
                body["previous_response_id"] = id
            given = await session.answer(body, SAMPLES[upstream][kind].stream, f"s{number}")
            said = output(given)
            history += [*new, *said]
            new = answers(said) or question(text or "go on")
            id = response_id(given)
        last = Session(store, last_upstream, issuer="up" if last_upstream == upstream else "other")
        whole: Body = {"model": "m", "input": [*history, *new], "tools": RESPONSE_TOOLS}
        if named:
            whole["instructions"] = "be kind"
        short = {**whole, "input": new} | ({"previous_response_id": id} if id else {})
        full = protocol(CLIENT).read_request(json.dumps(whole).encode(), "")
        continued = await last.continued(short)
        assert continued.request == full
        assert json.dumps(last.written(continued.request)) == json.dumps(last.written(full))
        await store.close()

    run(scenario())


def test_a_bare_string_is_a_message(store: Store) -> None:
    async def scenario() -> None:
        session = Session(store, "anthropic")
        given = await session.answer({"model": "m", "input": "Hi"}, SAMPLES["anthropic"]["text"].stream, "s1")
        asked = await session.asked(
            {"model": "m", "input": "More", "previous_response_id": response_id(given)}
        )
        assert [message["role"] for message in asked["messages"]] == ["user", "assistant", "user"]
        assert asked["messages"][0]["content"] == [{"type": "text", "text": "Hi"}]
        assert "system" not in asked

    run(scenario())


def test_one_response_can_be_continued_twice(store: Store) -> None:
    async def scenario() -> None:
        session = Session(store, "anthropic")
        stream = SAMPLES["anthropic"]["text"].stream
        first = response_id(await session.answer({"model": "m", "input": "Hi"}, stream, "s1"))
        for text in ("left", "right"):
            body = {"model": "m", "input": text, "previous_response_id": first}
            await session.answer(body, stream, text)
            asked = await session.asked(
                {"model": "m", "input": "end", "previous_response_id": f"resp_{text}"}
            )
            words = [message["content"][0]["text"] for message in asked["messages"]]
            assert words[::2] == ["Hi", text, "end"]

    run(scenario())


def unknown(session: Session, id: str = "resp_nope") -> PreviousResponseNotFound:
    with pytest.raises(PreviousResponseNotFound) as caught:
        run(session.continued({"model": "m", "input": "x", "previous_response_id": id}))
    return caught.value


def test_an_unknown_response_gives_openais_error(store: Store) -> None:
    error = unknown(Session(store, "anthropic"))
    assert (error.status, error.code, error.path) == (
        400,
        "previous_response_not_found",
        "previous_response_id",
    )
    assert isinstance(error, BadRequest)
    body = json.loads(OPENAI_RESPONSES.error_body(failure(error), "x"))
    assert body["error"]["code"] == "previous_response_not_found"
    assert body["error"]["message"].startswith("Previous response with id 'resp_nope' not found")


@pytest.mark.parametrize(
    ("body", "kind"),
    [({"store": False}, "text"), ({}, "error"), ({"stream": True}, "error")],
    ids=["not wanted", "failed", "failed stream"],
)
def test_responses_that_are_not_stored(store: Store, body: Body, kind: str) -> None:
    session = Session(store, "anthropic")
    stream = SAMPLES["anthropic"][kind].stream
    run(session.answer({"model": "m", "input": "Hi", **body}, stream, "s1"))
    unknown(session, "resp_s1")


def test_an_answer_cut_by_the_token_limit_is_stored(store: Store) -> None:
    session = Session(store, "anthropic")
    stream = SAMPLES["anthropic"]["max_tokens"].stream
    given = run(session.answer({"model": "m", "input": "Hi"}, stream, "s1"))
    assert json.loads(given)["status"] == "incomplete"
    run(session.continued({"model": "m", "input": "x", "previous_response_id": "resp_s1"}))


def test_a_response_belongs_to_its_client(store: Store) -> None:
    stream = SAMPLES["anthropic"]["text"].stream
    run(Session(store, "anthropic", scope="#one").answer({"model": "m", "input": "Hi"}, stream, "s1"))
    unknown(Session(store, "anthropic", scope="#other"), "resp_s1")


def test_a_response_expires_and_use_extends_its_life() -> None:
    class Clock:
        now = 1_000_000.0

    async def scenario() -> None:
        retention = Retention(entries=RetentionRule(seconds=100_000))
        store = open_store(None, retention=retention, now=lambda: Clock.now)
        session = Session(store, "anthropic")
        stream = SAMPLES["anthropic"]["text"].stream
        body: Body = {"model": "m", "input": "Hi"}
        for number in range(4):
            await session.answer(body, stream, f"s{number}")
            body = {"model": "m", "input": f"more {number}", "previous_response_id": f"resp_s{number}"}
            Clock.now += 60_000
        asked = await session.asked(body)
        assert len(asked["messages"]) == 9
        Clock.now += 60_000
        with pytest.raises(PreviousResponseNotFound):
            await session.continued(body)
        await store.close()

    run(scenario())


def test_a_repeated_history_is_not_stored_again(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def scenario() -> None:
        store = open_store(path)
        session = Session(store, "anthropic")
        stream = SAMPLES["anthropic"]["text"].stream
        items: list[Body] = question("A long text. " * 5000)
        for number in range(20):
            given = await session.answer({"model": "m", "input": items}, stream, f"s{number}")
            items = [*items, *output(given), *question(f"more {number}")]
        await store.close()

    run(scenario())
    assert path.stat().st_size < 400_000


def test_references_to_items_are_looked_up(store: Store) -> None:
    """Vercel's SDK sends references for all items that the server may store."""

    async def scenario() -> None:
        session = Session(store, "gemini")
        first = {"model": "m", "input": question("Paris?"), "tools": RESPONSE_TOOLS}
        said = output(await session.answer(first, SAMPLES["gemini"]["thinking_tool"].stream, "s1"))
        references = [{"type": "item_reference", "id": item["id"]} for item in said[:-1]]
        references.append({"id": said[-1]["id"]})
        body = {**first, "input": [*first["input"], *references, *answers(said)]}
        full = {**first, "input": [*first["input"], *said, *answers(said)]}
        assert await session.asked(body) == await session.asked(full)
        body["input"].append({"type": "item_reference", "id": "msg_nope"})
        with pytest.raises(BadRequest, match=r"input\[\d\]\.id: Item with id 'msg_nope' not found"):
            await session.asked(body)

    run(scenario())


def test_references_to_items_of_another_upstream_are_resolved(store: Store) -> None:
    async def scenario() -> None:
        stream = SAMPLES["anthropic"]["text"].stream
        said = output(await Session(store, "anthropic").answer({"model": "m", "input": "Hi"}, stream, "s1"))
        native = Session(store, CLIENT, issuer="keeps", native=True)
        theirs = {"type": "item_reference", "id": "msg_theirs"}
        ours = {"type": "item_reference", "id": said[0]["id"]}
        asked = await native.asked({"model": "m", "input": [theirs, ours]})
        assert asked["input"] == [theirs, said[0]]

    run(scenario())


def test_an_upstream_that_stores_responses_gets_its_own_ids(store: Store) -> None:
    async def scenario() -> None:
        session = Session(store, CLIENT, native=True)
        body = {"model": "m", "input": "Hi", "stream": True}
        given = await session.answer(body, SAMPLES[CLIENT]["text"].stream, "s1")
        id = response_id(given)
        more = {"model": "m", "input": "More", "previous_response_id": id}
        asked = await session.asked(more)
        assert asked == {**more, "model": "gpt-5"}
        # Another upstream does not know the id, and gets the history.
        for upstream, native in ((CLIENT, True), (CLIENT, False), ("anthropic", False)):
            other = await Session(store, upstream, issuer="other", native=native).asked(more)
            assert "previous_response_id" not in other
            assert len(other.get("input") or other["messages"]) == 3
        kept = await previous(store, protocol(CLIENT).read_request(json.dumps(more).encode(), ""))
        assert kept is not None
        assert (kept.issuer, kept.native) == ("up", True)

    run(scenario())


def test_ids_that_only_the_upstream_knows_go_only_to_it(store: Store) -> None:
    async def scenario() -> None:
        native = Session(store, CLIENT, native=True)
        body: Body = {"model": "m", "input": "Hi", "previous_response_id": "resp_theirs", "stream": True}
        assert (await native.asked(body))["previous_response_id"] == "resp_theirs"
        id = response_id(await native.answer(body, SAMPLES[CLIENT]["text"].stream, "s1"))
        more = {"model": "m", "input": "More", "previous_response_id": id}
        assert (await native.asked(more))["previous_response_id"] == id
        with pytest.raises(PreviousResponseNotFound):
            await Session(store, "anthropic").asked(more)

    run(scenario())


def test_a_conversation_id_is_left_to_the_provider(store: Store) -> None:
    body = {"model": "m", "input": "Hi", "conversation": "conv_1"}
    assert run(Session(store, CLIENT, native=True).asked(body))["conversation"] == "conv_1"
    with pytest.raises(BadRequest, match="conversation: this upstream does not store conversations"):
        run(Session(store, "anthropic").asked(body))


def test_a_final_event_without_output(store: Store) -> None:
    """Some servers end with an empty `output`. The stored items then come from the events."""

    async def scenario() -> None:
        *before, last, _ = SAMPLES[CLIENT]["text"].stream.splitlines()
        ending = json.loads(last[6:])
        said = ending["response"]["output"]
        ending["response"]["output"] = []
        stream = b"\n".join([*before, b"data: " + json.dumps(ending).encode(), b"", b""])
        given = await Session(store, CLIENT).answer(
            {"model": "m", "input": "Hi", "stream": True}, stream, "s1"
        )
        more = {"model": "m", "input": "More", "previous_response_id": response_id(given)}
        assert (await Session(store, CLIENT).asked(more))["input"][1]["content"] == said[0]["content"]

    run(scenario())


def test_a_broken_store_does_not_break_the_answer() -> None:
    class Broken:
        async def put(self, entries: Any) -> None:
            raise StoreError("the store is damaged")

    async def scenario() -> None:
        body = json.dumps({"model": "m", "input": "Hi"}).encode()
        continued = Continued(request=protocol(CLIENT).read_request(body, ""))
        store: Any = Broken()
        response: Body = {"id": "resp_s1", "model": "m", "status": "completed", "output": []}
        notices = await record(store, continued, response, issuer="up")
        assert [notice.rule for notice in notices] == ["response-not-stored"]

    run(scenario())
