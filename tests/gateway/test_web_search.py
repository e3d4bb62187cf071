"""Web search for upstreams without one: Dragoman runs it, and clients get blocks of their own protocol."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support import sdk_clients
from support.gateways import Gateway, Loop, gateway
from support.plain_http import Got, call, post
from support.scripted_upstream import (
    FOREVER,
    Reply,
    ScriptedUpstream,
    body,
    in_background,
    refused_url,
    slow_headers,
)
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES

from dragoman.conform import laws
from dragoman.conform.scripted.answer_bytes import ReplyContext, encode_reply
from dragoman.model.messages import Message, Part, Request, Text, ToolCall
from dragoman.recording import loads, replay

PAGE = "https://rome.example/weather"
PAGES = [
    {"url": PAGE, "title": "Weather in Rome", "content": "Sunny, 30 degrees."},
    {"url": "https://other.example/", "title": "Other", "content": "Nothing."},
    {"url": "javascript:alert(1)", "title": "No page"},
]
FOUND = json.dumps({"query": "x", "results": PAGES}).encode()
ANSWER = f"It is sunny ({PAGE})."
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}

HOSTED: dict[str, dict[str, Any]] = {
    ANTHROPIC: {"tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 8}]},
    CHAT: {"web_search_options": {}},
    RESPONSES: {"tools": [{"type": "web_search"}]},
    GEMINI: {"tools": [{"googleSearch": {}}]},
}
FUNCTION: dict[str, Any] = {
    ANTHROPIC: {"name": "get_weather", "input_schema": WEATHER},
    CHAT: {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}},
    RESPONSES: {"type": "function", "name": "get_weather", "parameters": WEATHER},
    GEMINI: {"functionDeclarations": [{"name": "get_weather", "parameters": WEATHER}]},
}
PATHS = {
    ANTHROPIC: "/v1/messages",
    CHAT: "/v1/chat/completions",
    RESPONSES: "/v1/responses",
    GEMINI: "/v1beta/models/m:generateContent",
}


def asked(client: str, *, stream: bool, more: bool = False, **changes: Any) -> tuple[str, dict[str, Any]]:
    """The path and the body of a request with a web search, and `more` tools."""
    path, words = PATHS[client], "Weather in Rome?"
    given: dict[str, Any] = {"model": "m", **HOSTED[client]}
    if more:
        given["tools"] = [*given.get("tools", []), FUNCTION[client]]
    if client == GEMINI:
        given["contents"] = [{"role": "user", "parts": [{"text": words}]}]
        path = path.replace("generateContent", "streamGenerateContent?alt=sse") if stream else path
    elif client == RESPONSES:
        given |= {"input": words, "stream": stream}
    else:
        given |= {"messages": [{"role": "user", "content": words}], "max_tokens": 100, "stream": stream}
    return path, {**given, **changes}


def spoken(upstream: str, *parts: Part, stream: bool) -> Reply:
    request = Request(model="m", messages=(Message("user", (Text("x"),)),), stream=stream)
    context = ReplyContext(protocol=upstream, request=request)
    return encode_reply(context, context.with_ids(parts))


def search(query: str = "weather Rome", name: str = "web_search") -> ToolCall:
    return ToolCall(id="c", name=name, arguments=json.dumps({"query": query}))


class SearchSetup:
    """A gateway, the upstream behind it, and the search engine."""

    def __init__(self, served: Gateway, upstream: ScriptedUpstream, engine: ScriptedUpstream) -> None:
        self.served, self.upstream, self.engine = served, upstream, engine

    def ask(self, client: str, *, stream: bool = False, more: bool = False, **changes: Any) -> Got:
        path, given = asked(client, stream=stream, more=more, **changes)
        return post(self.served.url + path, given)

    def answers(self, protocol: str, *turns: tuple[Part, ...], stream: bool = False) -> None:
        self.upstream.script(*[spoken(protocol, *parts, stream=stream) for parts in turns])

    def notices(self, got: Got) -> dict[str, str]:
        receipt = call(f"{self.served.url}/exchanges/{got.headers['x-dragoman-exchange']}").json
        return {notice["rule"]: notice["message"] for notice in receipt["notices"]}


@contextmanager
def search_setup(
    protocol: str = CHAT, how: str | None = None, *, may: str = "false", server: str = "", **options: Any
) -> Iterator[SearchSetup]:
    loop = Loop()
    try:
        with in_background() as upstream, in_background() as engine:
            engine.otherwise = body(FOUND)
            settings = {"url": f'"{engine.url}/search?language=en"', **options}
            section = "\n".join(f"{key} = {value}" for key, value in settings.items())
            config = f"""
                [server]
                retries = 0
                {server}
                [upstreams.up]
                protocol = "{protocol}"
                base_url = "{upstream.url}"
                credential = "none"
                web_search = {may}
                {"[search]" if how is None else ""}
                {section if how is None else how}
            """
            with gateway(config, loop) as served:
                yield SearchSetup(served, upstream, engine)
    finally:
        loop.close()


def results_sent(upstream: ScriptedUpstream) -> str:
    """The upstream's last request as text."""
    return upstream.last.body.decode()


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_every_client_gets_a_search_from_every_upstream(upstream: str, client: str, stream: bool) -> None:
    with search_setup(upstream) as it:
        it.answers(upstream, (Text("I look."), search()), (Text(ANSWER),), stream=stream)
        got = it.ask(client, stream=stream)
        assert got.status == 200, got.body
        assert laws.check(client, got.body, stream=stream) == []
        assert [seen.query for seen in it.engine.seen] == [
            {"language": "en", "q": "weather Rome", "format": "json"}
        ]
        assert len(it.upstream.seen) == 2
        assert "web_search" in it.upstream.seen[0].body.decode()
        assert "Sunny, 30 degrees." in results_sent(it.upstream)
        assert "javascript" not in results_sent(it.upstream)
        assert PAGE in got.body.decode()
        assert it.notices(got) == {"web-searched": "searched for 'weather Rome': 2 pages"}


def message_of(it: SearchSetup, stream: bool, **changes: Any) -> Any:
    sdk = sdk_clients.client(ANTHROPIC, it.served.url)
    _, given = asked(ANTHROPIC, stream=False, **changes)
    del given["stream"]
    if not stream:
        return sdk.messages.create(**given)
    with sdk.messages.stream(**given) as helper:
        return helper.get_final_message()


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_the_anthropic_sdk_reads_server_tool_blocks(stream: bool) -> None:
    with search_setup() as it:
        it.answers(CHAT, (Text("I look."), search()), (Text(ANSWER),), stream=stream)
        message = message_of(it, stream)
        first, used, result, last = message.content
        assert (first.text, last.text) == ("I look.", ANSWER)
        assert (used.type, used.name, used.input) == (
            "server_tool_use",
            "web_search",
            {"query": "weather Rome"},
        )
        assert result.tool_use_id == used.id
        assert [page.url for page in result.content] == [PAGE, "https://other.example/"]
        assert [citation.url for citation in last.citations] == [PAGE]
        assert message.usage.server_tool_use.web_search_requests == 1
        assert message.stop_reason == "end_turn"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_search_results_come_back_as_a_call_and_its_result(stream: bool) -> None:
    """The client sends them back: nothing is stored in between."""
    with search_setup() as it:
        it.answers(CHAT, (search(),), (Text(ANSWER),), (Text("Yes."),), stream=stream)
        first = message_of(it, stream)
        history = [
            {"role": "user", "content": "Weather in Rome?"},
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": "Sure?"},
        ]
        assert message_of(it, stream, messages=history).content[0].text == "Yes."
        roles = [message["role"] for message in it.upstream.last.json["messages"]]
        assert roles == ["user", "assistant", "tool", "assistant", "user"]
        call, result = it.upstream.last.json["messages"][1:3]
        assert json.loads(call["tool_calls"][0]["function"]["arguments"]) == {"query": "weather Rome"}
        assert result["tool_call_id"] == call["tool_calls"][0]["id"]
        assert "Sunny, 30 degrees." in result["content"]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_the_openai_sdk_reads_web_search_calls(stream: bool) -> None:
    with search_setup() as it:
        it.answers(CHAT, (search(),), (Text(ANSWER),), (Text("Yes."),), stream=stream)
        sdk = sdk_clients.client(RESPONSES, it.served.url)
        asking: dict[str, Any] = {"model": "m", "tools": [{"type": "web_search"}], "store": False}
        if stream:
            with sdk.responses.stream(input="Weather in Rome?", **asking) as events:
                kinds = [event.type for event in events]
                response = events.get_final_response()
            assert "response.web_search_call.searching" in kinds
        else:
            response = sdk.responses.create(input="Weather in Rome?", **asking)
        searched, message = response.output
        assert (searched.type, searched.status, searched.action.query) == (
            "web_search_call",
            "completed",
            "weather Rome",
        )
        assert [source.url for source in searched.action.sources] == [PAGE, "https://other.example/"]
        (note,) = message.content[0].annotations
        assert (note.type, note.url) == ("url_citation", PAGE)
        assert message.content[0].text[note.start_index : note.end_index] == PAGE
        history = [item.model_dump(exclude_none=True, warnings=False) for item in response.output]
        question = {"role": "user", "content": "Sure?"}
        again = sdk.responses.create(
            input=[{"role": "user", "content": "Weather?"}, *history, question], **asking
        )
        assert again.output_text == "Yes."
        assert "Sunny, 30 degrees." in results_sent(it.upstream)


def test_a_stored_response_keeps_the_search_results() -> None:
    with search_setup(RESPONSES) as it:
        it.answers(RESPONSES, (search(),), (Text(ANSWER),), (Text("Yes."),))
        sdk = sdk_clients.client(RESPONSES, it.served.url)
        asking: dict[str, Any] = {"model": "m", "tools": [{"type": "web_search"}]}
        first = sdk.responses.create(input="Weather in Rome?", **asking)
        again = sdk.responses.create(input="Sure?", previous_response_id=first.id, **asking)
        assert again.output_text == "Yes."
        kinds = [item.get("type", "message") for item in it.upstream.last.json["input"]]
        assert kinds == ["message", "function_call", "function_call_output", "message", "message"]
        assert "Sunny, 30 degrees." in results_sent(it.upstream)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_the_gemini_sdk_reads_grounding(stream: bool) -> None:
    with search_setup() as it:
        it.answers(CHAT, (search(),), (Text(ANSWER),), stream=stream)
        sdk = sdk_clients.client(GEMINI, it.served.url)
        asking: dict[str, Any] = {
            "model": "m",
            "contents": "Weather in Rome?",
            "config": {"tools": [{"google_search": {}}]},
        }
        if stream:
            *_, last = sdk.models.generate_content_stream(**asking)
        else:
            last = sdk.models.generate_content(**asking)
        grounding = last.candidates[0].grounding_metadata
        assert grounding.web_search_queries == ["weather Rome"]
        assert [chunk.web.uri for chunk in grounding.grounding_chunks] == [PAGE, "https://other.example/"]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_chat_clients_get_annotations(stream: bool) -> None:
    with search_setup() as it:
        it.answers(CHAT, (search(),), (Text(ANSWER),), stream=stream)
        got = it.ask(CHAT, stream=stream)
        assert b'"type":"url_citation"' in got.body
        assert b"tool_calls" not in got.body


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", PROTOCOLS)
def test_the_client_runs_its_own_calls_of_the_same_turn(client: str, stream: bool) -> None:
    weather = ToolCall(id="w", name="get_weather", arguments='{"city":"Rome"}')
    with search_setup() as it:
        it.answers(CHAT, (search(), weather), stream=stream)
        got = it.ask(client, stream=stream, more=True)
        assert laws.check(client, got.body, stream=stream) == []
        assert len(it.upstream.seen) == len(it.engine.seen) == 1
        assert b"get_weather" in got.body
        if client in (ANTHROPIC, CHAT):
            assert (b"tool_use" if client == ANTHROPIC else b'"finish_reason":"tool_calls"') in got.body


def test_a_search_beside_a_call_reaches_the_next_turn() -> None:
    weather = ToolCall(id="w", name="get_weather", arguments='{"city":"Rome"}')
    with search_setup() as it:
        it.answers(CHAT, (search(), weather), (Text(ANSWER),))
        tools = [*HOSTED[ANTHROPIC]["tools"], FUNCTION[ANTHROPIC]]
        first = message_of(it, False, tools=tools)
        assert first.stop_reason == "tool_use"
        call = next(block for block in first.content if block.type == "tool_use")
        history = [
            {"role": "user", "content": "Weather in Rome?"},
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "Hot"}]},
        ]
        message_of(it, False, tools=tools, messages=history)
        messages = it.upstream.last.json["messages"]
        assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool"]
        names = [made["function"]["name"] for made in messages[1]["tool_calls"]]
        assert sorted(names) == ["get_weather", "web_search"]
        assert {message["tool_call_id"] for message in messages[2:]} == {
            made["id"] for made in messages[1]["tool_calls"]
        }


def test_searches_are_stored_for_clients_that_cannot_carry_them(tmp_path: Path) -> None:
    """A Chat client sends back only its own calls, and perhaps to another process."""
    weather = ToolCall(id="w", name="get_weather", arguments='{"city":"Rome"}')
    store = f'store = "{tmp_path / "d.db"}"'
    with search_setup(server=store) as it, search_setup(server=store) as elsewhere:
        it.answers(CHAT, (search(), weather))
        first = it.ask(CHAT, more=True).json["choices"][0]["message"]
        (called,) = first["tool_calls"]
        history = [
            {"role": "user", "content": "Weather in Rome?"},
            first,
            {"role": "tool", "tool_call_id": called["id"], "content": "Hot"},
        ]
        for place in (it, elsewhere):
            place.answers(CHAT, (Text(ANSWER),))
            assert place.ask(CHAT, more=True, messages=history).status == 200
            messages = place.upstream.last.json["messages"]
            assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool"]
            names = [made["function"]["name"] for made in messages[1]["tool_calls"]]
            assert sorted(names) == ["get_weather", "web_search"]
            assert "Sunny, 30 degrees." in results_sent(place.upstream)


@pytest.mark.parametrize("protocol", [CHAT, ANTHROPIC, GEMINI, RESPONSES])
def test_codex_brings_back_searches_without_their_ids(protocol: str) -> None:
    with search_setup(protocol) as it:
        it.answers(protocol, (search(),), (Text(ANSWER),), (Text("Bye."),))
        output = it.ask(RESPONSES).json["output"]
        assert [item["type"] for item in output] == ["web_search_call", "message"]
        echoed = [{key: value for key, value in item.items() if key != "id"} for item in output]
        question = {"role": "user", "content": "Weather in Rome?"}
        got = it.ask(RESPONSES, input=[question, *echoed, {"role": "user", "content": "Sure?"}])
        assert got.status == 200, got.body
        assert "Sure?" in results_sent(it.upstream)


def test_a_forced_search_is_forced_once() -> None:
    with search_setup() as it:
        it.answers(CHAT, (search(),), (Text(ANSWER),))
        it.ask(ANTHROPIC, tool_choice={"type": "tool", "name": "web_search"})
        first, second = (seen.json for seen in it.upstream.seen)
        assert first["tool_choice"]["function"]["name"] == "web_search"
        assert second["tool_choice"] == "auto"


def test_usage_of_all_turns_is_added_up() -> None:
    with search_setup() as it:
        it.answers(CHAT, (search(),), (Text(ANSWER),))
        usage = it.ask(CHAT).json["usage"]
        each = [json.loads(spoken(CHAT, part, stream=False).steps[0]) for part in (search(), Text(ANSWER))]
        assert usage["total_tokens"] == sum(one["usage"]["total_tokens"] for one in each)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (None, "could not be sent"),
        (body(b"", status=503), "was answered with HTTP 503"),
        (body(b"<html>"), "returned no JSON"),
        (body(b'{"results": {}}'), "returned no JSON of the form"),
        (slow_headers(FOREVER, body(FOUND)), "took more than 0.2 seconds"),
    ],
    ids=["down", "refused", "page", "shape", "slow"],
)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_failed_search_is_reported(reply: Reply | None, why: str, stream: bool) -> None:
    """To the model, to the client as an error block, and on the receipt. The answer goes on."""
    url = {"url": f'"{refused_url()}"'} if reply is None else {}
    with search_setup(timeout='"200ms"', **url) as it:
        it.engine.otherwise = reply
        it.answers(CHAT, (search(),), (Text("I could not search."),), stream=stream)
        got = it.ask(ANTHROPIC, stream=stream)
        assert laws.check(ANTHROPIC, got.body, stream=stream) == []
        assert b'"error_code":"unavailable"' in got.body
        assert "The search failed." in results_sent(it.upstream)
        assert f"the search for 'weather Rome' {why}" in it.notices(got)["search-failed"]


def test_the_anthropic_sdk_reads_a_failed_search() -> None:
    with search_setup() as it:
        it.engine.otherwise = body(b"", status=503)
        it.answers(CHAT, (search(),), (Text("I could not search."),))
        _, result, last = message_of(it, False).content
        assert result.content.error_code == "unavailable"
        assert last.text == "I could not search."


@pytest.mark.parametrize("own", [None, 2], ids=["config", "client"])
def test_the_number_of_searches_is_limited(own: int | None) -> None:
    with search_setup(max_uses=2 if own is None else 5) as it:
        it.answers(CHAT, (search("a"), search("b"), search("c")), (Text("Enough."),))
        tool = {**HOSTED[ANTHROPIC]["tools"][0], "max_uses": own or 8}
        message = message_of(it, False, tools=[tool])
        results = [block.content for block in message.content if block.type == "web_search_tool_result"]
        assert [isinstance(result, list) for result in results] == [True, True, False]
        assert results[2].error_code == "max_uses_exceeded"
        assert len(it.engine.seen) == 2


def test_a_model_that_never_stops_searching_ends_in_an_error() -> None:
    with search_setup(max_uses=1) as it:
        it.answers(CHAT, *[(search(str(number)),) for number in range(9)])
        got = it.ask(ANTHROPIC)
        assert got.status == 502
        assert "the model still searches after 4 searches that were not run" in got.json["error"]["message"]
        assert len(it.upstream.seen) == 5


def test_a_search_without_a_query_is_not_run() -> None:
    with search_setup() as it:
        it.answers(CHAT, (search("  "),), (Text("No."),))
        message = message_of(it, False)
        assert message.content[1].content.error_code == "invalid_tool_input"
        assert it.engine.seen == []


def test_a_cut_search_is_not_run() -> None:
    with search_setup() as it:
        cut = json.loads(spoken(CHAT, search(), stream=False).steps[0])
        cut["choices"][0]["finish_reason"] = "length"
        cut["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = '{"query":"wea'
        it.upstream.script(body(json.dumps(cut).encode()))
        got = it.ask(ANTHROPIC)
        assert it.engine.seen == []
        assert got.status != 200 or got.json["stop_reason"] == "max_tokens"


def test_domains_of_the_client_are_respected() -> None:
    with search_setup() as it:
        it.answers(CHAT, (search(),), (Text(ANSWER),))
        tool = {**HOSTED[ANTHROPIC]["tools"][0], "blocked_domains": ["rome.example"]}
        result = message_of(it, False, tools=[tool]).content[1]
        assert [page.url for page in result.content] == ["https://other.example/"]


def test_a_program_searches() -> None:
    """It gets the query as its last argument, which is never an option, and few variables."""
    script = (
        "import json, os, sys; "
        "print(json.dumps({'results': [{'url': 'https://a.example/', 'title': sys.argv[-1], "
        "'content': str('SECRET' in os.environ)}]}))"
    )
    command = json.dumps([sys.executable, "-c", script])
    with search_setup(how=f"[search]\ncommand = {command}") as it:
        it.answers(CHAT, (search("--version rome"),), (Text("Done."),))
        _, result, _ = message_of(it, False).content
        assert [page.title for page in result.content] == ["version rome"]
        assert "False" in results_sent(it.upstream)


@pytest.mark.parametrize("client", PROTOCOLS)
def test_without_an_executor_an_expected_search_is_refused(client: str) -> None:
    with search_setup(how="") as it:
        got = it.ask(client)
        assert got.status == 400
        assert "[search]" in got.json["error"]["message"]
        assert it.upstream.seen == []


@pytest.mark.parametrize("client", PROTOCOLS)
def test_without_an_executor_an_optional_search_is_dropped_with_a_notice(client: str) -> None:
    with search_setup(how="") as it:
        it.answers(CHAT, (Text("Hello."),))
        got = it.ask(client, more=True)
        assert got.status == 200
        assert "web_search" not in it.upstream.last.body.decode()
        assert list(it.notices(got)) == ["hosted-tool-dropped"]


@pytest.mark.parametrize("client", [ANTHROPIC, RESPONSES, GEMINI])
def test_a_search_is_run_if_the_upstreams_protocol_has_none(client: str) -> None:
    with search_setup(may="true") as it:
        it.answers(CHAT, (search(),), (Text(ANSWER),))
        assert it.ask(client).status == 200
        assert len(it.engine.seen) == 1
    with search_setup(how="", may="true") as it:
        assert it.ask(client).status == 400
        it.answers(CHAT, (Text("Hello."),))
        got = it.ask(client, more=True)
        assert list(it.notices(got)) == ["hosted-tool-dropped"]


def test_a_forced_search_among_other_tools_is_refused_too() -> None:
    with search_setup(how="") as it:
        got = it.ask(ANTHROPIC, more=True, tool_choice={"type": "tool", "name": "web_search"})
        assert got.status == 400


@pytest.mark.parametrize(
    ("declared", "choice"),
    [
        ("web_search", {"type": "web_search"}),
        ("web_search_2025_08_26", {"type": "web_search"}),
        ("web_search_2025_08_26", {"type": "web_search_2025_08_26"}),
        ("web_search_preview", {"type": "web_search_preview"}),
        (
            "web_search",
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "web_search"}]},
        ),
    ],
)
def test_every_form_of_a_forced_search_is_one(declared: str, choice: dict[str, Any]) -> None:
    function = {"type": "function", "name": "f", "parameters": {"type": "object"}}
    body = {
        "model": "up/m",
        "input": "News?",
        "tools": [{"type": declared}, function],
        "tool_choice": choice,
    }
    with search_setup(how="") as it:
        got = post(it.served.url + "/v1/responses", body)
        assert got.status == 400
        assert "[search]" in got.json["error"]["message"]
        optional = {**choice, "mode": "auto"} if "mode" in choice else "auto"
        it.answers(CHAT, (Text("Hello."),))
        assert post(it.served.url + "/v1/responses", {**body, "tool_choice": optional}).status == 200


def test_another_target_that_searches_is_tried() -> None:
    to = '[[routes]]\nmatch = "*"\nto = ["up/*", "native/*"]'
    with in_background() as native:
        native.otherwise = spoken(ANTHROPIC, Text("Hello."), stream=False)
        upstream = f'[upstreams.native]\nprotocol = "anthropic"\nbase_url = "{native.url}"'
        with search_setup(how=f'{upstream}\ncredential = "none"\n{to}') as it:
            assert it.ask(ANTHROPIC).status == 200
            assert it.upstream.seen == []
            assert len(native.seen) == 1


def test_an_upstream_that_searches_itself_is_left_alone() -> None:
    with search_setup(ANTHROPIC, may="true") as it:
        it.answers(ANTHROPIC, (Text("Hello."),))
        assert it.ask(RESPONSES).status == 200
        assert it.upstream.last.json["tools"][0]["type"].startswith("web_search_")


def test_a_tool_of_the_client_may_have_the_same_name() -> None:
    with search_setup() as it:
        own = {"name": "web_search", "input_schema": WEATHER}
        it.answers(CHAT, (search(name="dragoman_web_search"),), (Text(ANSWER),))
        tools = [*HOSTED[ANTHROPIC]["tools"], own]
        assert it.ask(ANTHROPIC, tools=tools).status == 200
        names = [tool["function"]["name"] for tool in it.upstream.last.json["tools"]]
        assert names == ["dragoman_web_search", "web_search"]
        assert len(it.engine.seen) == 1


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", PROTOCOLS)
def test_an_exchange_with_a_search_can_be_replayed(client: str, stream: bool) -> None:
    with search_setup() as it:
        it.answers(CHAT, (Text("I look."), search()), (Text(ANSWER),), stream=stream)
        got = it.ask(client, stream=stream)
        data = call(f"{it.served.url}/exchanges/{got.headers['x-dragoman-exchange']}/recording").body
        again = replay(loads(data))
        assert again.same
        assert again.client == got.body
