"""`dragoman conform` against an endpoint that keeps all laws, and against endpoints that break one each."""

import json
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from support.edited_streams import Events, first, place
from support.endpoints import (
    Asked,
    Spoil,
    endpoint,
    in_answers,
    in_stream_bytes,
    in_streams,
    is_stream,
    resent,
    sent,
    serving,
)
from support.gateways import Loop, gateway
from support.scripted_upstream import refused_url
from support.wires import ANTHROPIC, CHAT, CURSOR, GEMINI, PROTOCOLS, RESPONSES

from dragoman.cli import main
from dragoman.cli.demo import gateway as demo
from dragoman.conform import probes
from dragoman.conform.laws import framing, http
from dragoman.conform.scripted import Cut, Reply
from dragoman.conform.scripted.replies import body as whole_body
from dragoman.gateway.state import State
from dragoman.transport.server import HttpRequest, HttpResponse

MODEL = "demo-parallel"
FAILED = {
    ANTHROPIC: {"type": "error", "error": {"type": "api_error", "message": "no"}},
    CHAT: {"error": {"type": "server_error", "message": "no"}},
}


def conform(url: str, protocol: str, *options: str) -> tuple[int, Any]:
    """The exit code and the report."""
    result = CliRunner().invoke(
        main, ["conform", url, "--protocol", protocol, "--model", MODEL, "--json", *options]
    )
    assert result.stdout, result.output
    return result.exit_code, json.loads(result.stdout)


def broken(report: Any, state: str = "broken") -> set[str]:
    return {law["name"] for law in report["laws"] if law["state"] == state}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_correct_endpoint_passes(loop: Loop, protocol: str) -> None:
    with endpoint(loop) as url:
        code, report = conform(url, protocol, "--strict")
    assert [trial for trial in report["trials"] if trial["state"] != "kept"] == []
    assert (code, report["problem"]) == (0, None)
    assert not broken(report)
    # Not every endpoint can be made to send errors inside streams, or signatures.
    assert len(broken(report, "unseen")) <= 3


@pytest.mark.parametrize("url", ["{url}", "{url}/", "{url}/v1", "{url}/v1/chat/completions"])
def test_the_address_may_be_the_base_url_of_an_sdk(loop: Loop, url: str) -> None:
    with endpoint(loop) as root:
        assert conform(url.format(url=root), CHAT, "--only", "text-*")[0] == 0


def test_cursor_is_asked_in_chat_and_judged_by_its_own_format(loop: Loop) -> None:
    with endpoint(loop) as model:
        state = State(demo.config(model, "127.0.0.1", 0), env={})
        with gateway(state, loop) as served:
            code, report = conform(served.url, CURSOR, "--strict")
    assert [trial for trial in report["trials"] if trial["state"] != "kept"] == []
    assert (code, report["problem"]) == (0, None)
    assert {"announced", "call-form", "parallel-calls"} <= broken(report, "kept")


# One law each.


def swap(events: Events, a: int, b: int) -> None:
    events[a], events[b] = events[b], events[a]


def each_call(change: Any) -> Any:
    def spoil(events: Events) -> None:
        for event in events:
            if event != "[DONE]":
                for choice in event.get("choices") or []:
                    for call in choice["delta"].get("tool_calls") or []:
                        change(call)

    return spoil


def error_with_200(asked: Asked, reply: Reply) -> Reply:
    streams = is_stream(reply) or reply.status != 200 or "models" in asked.path
    return reply if streams else resent(reply, json.dumps(FAILED[asked.protocol]).encode())


def answer_anything(_: Asked, reply: Reply) -> Reply:
    return msgspec.structs.replace(reply, status=200) if reply.status == 400 else reply


def only_on(path: str, data: bytes) -> Spoil:
    return lambda asked, reply: whole_body(data) if asked.path.endswith(path) else reply


def say_nothing(events: Events) -> None:
    events[:] = [e for e in events if not e["type"].startswith("content_block")]
    first(events, "message_delta")["delta"]["stop_reason"] = "end_turn"


TWO_THINGS = b'data: {"text":"Hi","finish_reason":"stop"}\n\ndata: [DONE]\n\n'

BAD: list[tuple[str, str, Spoil]] = [
    ("one-thing", CURSOR, lambda _, __: whole_body(TWO_THINGS, content_type="text/event-stream")),
    ("clean-transfer", CHAT, lambda _, r: msgspec.structs.replace(r, steps=(sent(r)[:200], Cut()))),
    ("status-200", ANTHROPIC, lambda _, r: whole_body(json.dumps(FAILED[ANTHROPIC]).encode(), status=500)),
    ("content-type", GEMINI, lambda _, r: msgspec.structs.replace(r, content_type="text/plain")),
    ("error-status", CHAT, error_with_200),
    ("declines-malformed", ANTHROPIC, answer_anything),
    ("says-something", ANTHROPIC, in_streams(say_nothing)),
    ("calls-declared-tools", CHAT, in_answers(lambda b: b.replace(b'"get_weather"', b'"GetWeather"'))),
    ("call-fits-schema", RESPONSES, in_answers(lambda b: b.replace(b'\\"days\\":', b'\\"tage\\":'))),
    ("count-tokens", ANTHROPIC, only_on("/count_tokens", b'{"input_tokens":"many"}')),
    ("utf-8", CHAT, in_stream_bytes(lambda b: b"\xef\xbb\xbf" + b)),
    ("line-separators", GEMINI, in_stream_bytes(lambda b: b.replace(b"I will", "I\u2028will".encode()))),
    ("closed-events", ANTHROPIC, in_stream_bytes(lambda b: b.rstrip() + b"\n")),
    ("sse-fields", GEMINI, in_stream_bytes(lambda b: b": keep-alive\n\n" + b)),
    ("json", RESPONSES, in_stream_bytes(lambda b: b + b"data: [DONE]\n\n")),
    ("shape", CHAT, in_streams(lambda e: e[0].pop("created"))),
    ("call-json", CHAT, in_streams(each_call(lambda call: call["function"].update(arguments="{")))),
    ("message-start", ANTHROPIC, in_streams(lambda e: e.insert(1, e[0]))),
    ("one-block-open", ANTHROPIC, in_streams(lambda e: e.pop(place(e, "content_block_stop")))),
    ("block-index", ANTHROPIC, in_streams(lambda e: first(e, "content_block_start").update(index=7))),
    ("stop-reason", ANTHROPIC, in_streams(lambda e: first(e, "message_delta")["delta"].clear())),
    ("terminal-event", ANTHROPIC, in_streams(lambda e: e.pop())),
    ("event-name", ANTHROPIC, in_stream_bytes(lambda b: b.replace(b"event: message_stop", b"event: bye"))),
    ("usage", ANTHROPIC, in_streams(lambda e: first(e, "message_delta")["usage"].update(output_tokens=0))),
    ("call-head", CHAT, in_streams(each_call(lambda call: call.update(id="again", type="function")))),
    ("call-index", CHAT, in_streams(each_call(lambda call: call.update(index=call["index"] + 1)))),
    ("constant-head", CHAT, in_streams(lambda e: e[1].update(id="another"))),
    ("role", CHAT, in_streams(lambda e: e[0]["choices"][0]["delta"].pop("role"))),
    ("terminal-event", CHAT, in_streams(lambda e: e.pop())),
    ("finish-reason", CHAT, in_stream_bytes(lambda b: b.replace(b'"tool_calls"}', b'"stop"}'))),
    ("no-event-names", CHAT, in_stream_bytes(lambda b: b.replace(b"data:", b"event: message\ndata:", 1))),
    ("created-first", RESPONSES, in_streams(lambda e: swap(e, 0, 1))),
    ("sequence-number", RESPONSES, in_stream_bytes(lambda b: b.replace(b'_number":3', b'_number":30'))),
    ("output-is-items", RESPONSES, in_streams(lambda e: e[-1]["response"].update(output=[]))),
    ("item-once", RESPONSES, in_streams(lambda e: e.pop(place(e, "response.output_item.added")))),
    ("deltas-add-up", RESPONSES, in_streams(lambda e: e.pop(place(e, "response.output_text.delta")))),
    ("terminal-event", GEMINI, in_streams(lambda e: e.append(e[-1]))),
    ("call-name", GEMINI, in_answers(lambda b: b.replace(b'"name":"get_weather"', b'"name":""'))),
    ("constant-head", GEMINI, in_streams(lambda e: e[-1].update(responseId="another"))),
    ("error-form", GEMINI, lambda _, r: r if r.status == 200 else resent(r, b'{"error":"no"}')),
]


@pytest.mark.parametrize(("law", "protocol", "spoil"), BAD, ids=[f"{law}-{p}" for law, p, _ in BAD])
def test_a_broken_law_is_named(loop: Loop, law: str, protocol: str, spoil: Spoil) -> None:
    with endpoint(loop, spoil) as url:
        code, report = conform(url, protocol)
    assert code == 1
    assert law in broken(report)
    [row] = [row for row in report["laws"] if row["name"] == law]
    assert row["first"]["why"]
    assert row["broken"] == sum(
        any(breach["law"] == law for breach in trial["breaches"]) for trial in report["trials"]
    )


def test_the_broken_endpoints_cover_every_kind_of_law() -> None:
    firm = {law.name for law in (*http.LAWS, *probes.LAWS, *framing.STREAM) if law.firm}
    assert firm <= {law for law, _, _ in BAD}
    assert {protocol for _, protocol, _ in BAD} == {*PROTOCOLS, CURSOR}


def test_behaviour_of_the_model_is_only_noted(loop: Loop) -> None:
    with endpoint(loop, only_on("/models", b'{"data":[]}')) as url:
        code, report = conform(url, CHAT, "--model", "demo")
        assert (code, broken(report, "noted")) == (0, {"parallel-calls", "models-list"})
        code, report = conform(url, CHAT, "--model", "demo", "--strict")
        assert code == 1


def test_the_first_offending_bytes_are_shown(loop: Loop) -> None:
    spoil = in_streams(lambda e: first(e, "content_block_start").update(index=7))
    with endpoint(loop, spoil) as url:
        code, report = conform(url, ANTHROPIC, "--only", "text-stream")
        told = CliRunner().invoke(
            main, ["conform", url, "--protocol", ANTHROPIC, "--model", MODEL, "--only", "text-stream"]
        )
    [law] = [law for law in report["laws"] if law["name"] == "block-index"]
    first_breach = law["first"]
    assert first_breach["place"] == "event 2 (content_block_start)"
    assert first_breach["bytes"].startswith('event: content_block_start\ndata: {"type":"content_block_start"')
    assert (code, told.exit_code) == (1, 1)
    assert "BROKEN  block-index" in told.stdout
    assert "event 2 (content_block_start): index is not 0" in told.stdout
    assert f"bytes at {first_breach['offset']}: event: content_block_start\\ndata:" in told.stdout
    assert "\x1b" not in told.stdout
    assert told.stdout.rstrip().splitlines()[-1].endswith("; 1 trial")


# When it cannot run.


def refused(*options: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["conform", *options])
    assert "Traceback" not in result.output
    return result.exit_code, result.output


def test_an_unreachable_endpoint_is_an_error() -> None:
    code, said = refused(refused_url(), "--protocol", CHAT)
    assert code == 2
    assert "no endpoint answers" in said
    code, report = conform(refused_url(), CHAT)
    assert (code, report["exit_code"], report["trials"]) == (2, 2, [])
    assert "no endpoint answers" in report["problem"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--protocol", CHAT], "give the endpoint's URL"),
        (["http://127.0.0.1:9"], "--protocol"),
        (
            ["http://127.0.0.1:9", "--protocol", CURSOR, "--upstream-port", "9"],
            "does not work with --protocol cursor",
        ),
        (["ftp://x", "--protocol", CHAT], "the URL must"),
        (["http://127.0.0.1:9", "--protocol", "soap"], "soap"),
        (["http://127.0.0.1:9", "--protocol", CHAT, "--only", "nothing"], "--list"),
        (
            ["http://127.0.0.1:9", "--protocol", CHAT, "--key", "env:NOT_THERE"],
            "variable NOT_THERE is not set",
        ),
    ],
)
def test_a_usage_error_is_one_line(options: list[str], says: str) -> None:
    code, said = refused(*options)
    assert code == 2
    assert says in said


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_missing_key_is_reported_and_the_error_body_is_judged(loop: Loop, protocol: str) -> None:
    with endpoint(loop) as url:
        code, report = conform(url, protocol, "--model", "demo-unauthorized")
    assert code == 2
    assert "--key" in report["problem"]
    assert report["trials"][0]["state"] == "kept"
    assert {trial["skipped"] for trial in report["trials"][1:]} == {"needs a key"}
    assert "error-form" in broken(report, "kept")


@pytest.mark.parametrize(
    ("protocol", "header"),
    [(ANTHROPIC, "x-api-key"), (GEMINI, "x-goog-api-key"), (CHAT, "authorization")],
)
def test_the_key_is_sent_in_the_header_of_its_protocol(
    loop: Loop, monkeypatch: pytest.MonkeyPatch, protocol: str, header: str
) -> None:
    seen: list[str | None] = []

    async def handle(request: HttpRequest) -> HttpResponse:
        seen.append(request.headers.get(header))
        return HttpResponse(status=401)

    monkeypatch.setenv("SOME_KEY", "k-1")
    with serving(loop, handle) as url:
        conform(url, protocol, "--key", "env:SOME_KEY")
        conform(url, protocol)
        monkeypatch.setenv("DRAGOMAN_CONFORM_KEY", "k-2")
        conform(url, protocol)
    assert [key.removeprefix("Bearer ") if key else None for key in seen] == ["k-1", None, "k-2"]


def test_a_missing_path_breaks_no_law(loop: Loop) -> None:
    with endpoint(loop, lambda _, reply: whole_body(b"Not Found", status=404)) as url:
        code, said = refused(url, "--protocol", CHAT, "--model", "gone")
    assert code == 2
    assert "gone" in said
    assert "404" in said


def test_an_endless_answer_is_given_up(loop: Loop) -> None:
    with endpoint(loop) as url:
        code, report = conform(
            url, CHAT, "--model", "demo-stall", "--timeout", "0.3", "--only", "text-stream"
        )
    assert code == 1
    assert "clean-transfer" in broken(report)


def test_a_reply_that_is_not_http_breaks_only_the_transfer_law(loop: Loop) -> None:
    with endpoint(loop, lambda _, __: Reply(steps=(b"SSH-2.0-OpenSSH\r\n",), bare=True)) as url:
        code, report = conform(url, CHAT)
    assert (code, broken(report)) == (1, {"clean-transfer"})
    assert {trial["state"] for trial in report["trials"]} <= {"broken", "skipped"}


def test_without_a_model_the_first_listed_one_is_used(loop: Loop) -> None:
    with endpoint(loop) as url:
        result = CliRunner().invoke(main, ["conform", url, "--protocol", GEMINI, "--json"])
    assert json.loads(result.stdout)["model"] == "demo"
    assert result.exit_code == 0


def test_the_trials_can_be_listed() -> None:
    listed = CliRunner().invoke(main, ["conform", "--protocol", CHAT, "--list"]).stdout
    assert listed.startswith("text-stream ")
    assert "count-tokens" not in listed
    found = CliRunner().invoke(
        main, ["conform", "--protocol", CHAT, "--list", "--json", "--upstream-port", "1", "--only", "leak"]
    )
    assert len(json.loads(found.stdout)) == 63
