"""Images for models that cannot see: described by another model, or replaced by a stated placeholder."""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.gateways import Gateway, Loop, gateway
from support.plain_http import Got, call, post
from support.scripted_upstream import FOREVER, ScriptedUpstream, body, in_background, slow_headers
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES

from dragoman.conform.scripted.answer_bytes import ReplyContext, encode_reply
from dragoman.model.messages import Message, Request, Text

DATA = base64.b64encode(b"\x89PNG" + b"x" * 3000).decode()
OTHER = base64.b64encode(b"\x89PNG" + b"y" * 3000).decode()
PLACEHOLDER = "[image: image/png, 3 KB; this model cannot see images]"
SEEN = "A red square with the word STOP."
PATHS = {
    ANTHROPIC: "/v1/messages",
    CHAT: "/v1/chat/completions",
    RESPONSES: "/v1/responses",
    GEMINI: "/v1beta/models/m:generateContent",
}


def image(client: str, data: str) -> dict[str, Any]:
    url = f"data:image/png;base64,{data}"
    return {
        ANTHROPIC: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
        CHAT: {"type": "image_url", "image_url": {"url": url}},
        RESPONSES: {"type": "input_image", "image_url": url},
        GEMINI: {"inlineData": {"mimeType": "image/png", "data": data}},
    }[client]


def asked(client: str, *images: str, stream: bool = False) -> tuple[str, dict[str, Any]]:
    shown = [image(client, data) for data in images]
    words = "What is this?"
    match client:
        case "gemini":
            path = PATHS[client]
            path = path.replace("generateContent", "streamGenerateContent?alt=sse") if stream else path
            return path, {"contents": [{"role": "user", "parts": [{"text": words}, *shown]}]}
        case "openai-responses":
            content = [{"type": "input_text", "text": words}, *shown]
            given: dict[str, Any] = {"input": [{"role": "user", "content": content}]}
        case _:
            content = [{"type": "text", "text": words}, *shown]
            given = {"messages": [{"role": "user", "content": content}], "max_tokens": 100}
    return PATHS[client], {"model": "m", "stream": stream, **given}


def words(protocol: str, text: str, *, stream: bool = False) -> Any:
    request = Request(model="m", messages=(Message("user", (Text("x"),)),), stream=stream)
    return encode_reply(ReplyContext(protocol=protocol, request=request), [Text(text)])


class ImageSetup:
    """A gateway with one model that accepts images and one that does not."""

    def __init__(self, served: Gateway, blind: ScriptedUpstream, seeing: ScriptedUpstream) -> None:
        self.served, self.blind, self.seeing = served, blind, seeing

    def ask(self, client: str, *images: str, stream: bool = False, **headers: str) -> Got:
        path, given = asked(client, *images, stream=stream)
        return post(self.served.url + path, given, **headers)

    def notices(self, got: Got) -> dict[str, str]:
        receipt = call(f"{self.served.url}/exchanges/{got.headers['x-dragoman-exchange']}").json
        return {notice["rule"]: notice["message"] for notice in receipt["notices"]}


@contextmanager
def image_setup(
    protocol: str = CHAT,
    seer: str = CHAT,
    *,
    describe: bool = True,
    more: str = "",
    sees: str = "false",
    timeout: str = "30s",
    server: str = "",
) -> Iterator[ImageSetup]:
    loop = Loop()
    try:
        with in_background() as blind, in_background() as seeing:
            blind.otherwise = words(protocol, "I see.")
            seeing.otherwise = words(seer, SEEN)
            config = f"""
                [server]
                retries = 0
                {server}
                [upstreams.blind]
                protocol = "{protocol}"
                base_url = "{blind.url}"
                credential = "none"
                models = [{{ name = "m", images = {sees} }}]
                {more}
                [upstreams.seer]
                protocol = "{seer}"
                base_url = "{seeing.url}"
                credential = "none"
                [images]
                timeout = "{timeout}"
                {'describe_with = "seer/eye"' if describe else ""}
                [[routes]]
                match = "*"
                to = "blind/*"
            """
            with gateway(config, loop) as served:
                yield ImageSetup(served, blind, seeing)
    finally:
        loop.close()


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_an_image_is_replaced_by_its_description(upstream: str, client: str, stream: bool) -> None:
    with image_setup(upstream, client) as it:
        it.blind.otherwise = words(upstream, "I see.", stream=stream)
        got = it.ask(client, DATA, stream=stream)
        assert got.status == 200
        sent = it.blind.last.body.decode()
        assert SEEN in sent
        assert DATA not in sent
        assert DATA in it.seeing.last.body.decode()
        assert it.notices(got) == {"images-described": "1 image was described by seer/eye"}


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_without_a_vision_model_a_placeholder_is_used(upstream: str, client: str) -> None:
    with image_setup(upstream, describe=False) as it:
        got = it.ask(client, DATA, OTHER)
        assert got.status == 200
        assert it.blind.last.body.decode().count(PLACEHOLDER) == 2
        assert it.seeing.seen == []
        assert list(it.notices(got)) == ["images-replaced"]
        assert "images-replaced messages" in got.headers["x-dragoman-warnings"]


def test_an_image_is_described_once() -> None:
    """Each turn of the conversation repeats the image."""
    with image_setup() as it:
        it.ask(ANTHROPIC, DATA)
        it.ask(CHAT, DATA, DATA, OTHER)
        assert len(it.seeing.seen) == 2
        assert it.blind.last.body.decode().count(SEEN) == 3


def test_a_description_is_for_the_client_that_it_was_written_for() -> None:
    with image_setup() as it:
        for key in ("one-key-1234", "other-key-1234", "one-key-1234"):
            assert it.ask(CHAT, DATA, x_api_key=key).status == 200
        assert len(it.seeing.seen) == 2


def test_another_process_knows_the_description(tmp_path: Path) -> None:
    store = f'store = "{tmp_path / "d.db"}"'
    with image_setup(server=store) as one, image_setup(server=store) as other:
        one.ask(ANTHROPIC, DATA)
        other.ask(CHAT, DATA)
        assert (len(one.seeing.seen), len(other.seeing.seen)) == (1, 0)
        assert SEEN in other.blind.last.body.decode()


def test_the_tokens_of_a_description_are_counted() -> None:
    with image_setup() as it:
        it.ask(ANTHROPIC, DATA)
        page = call(f"{it.served.url}/metrics").body.decode()
        counted = [
            line for line in page.splitlines() if 'client="dragoman"' in line and "tokens_total" in line
        ]
        kinds = {re.findall(r'kind="(\w+)"', line)[0] for line in counted if not line.endswith(" 0.0")}
        assert kinds == {"input", "output"}
        assert all('upstream="seer"' in line and 'model="eye"' in line for line in counted)


def test_images_in_tool_results_are_described() -> None:
    with image_setup() as it:
        call = {"type": "tool_use", "id": "c1", "name": "screenshot", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "c1", "content": [image(ANTHROPIC, DATA)]}
        given = {
            "model": "m",
            "max_tokens": 100,
            "tools": [{"name": "screenshot", "input_schema": {"type": "object"}}],
            "messages": [
                {"role": "user", "content": "Look."},
                {"role": "assistant", "content": [call]},
                {"role": "user", "content": [result]},
            ],
        }
        assert post(f"{it.served.url}/v1/messages", given).status == 200
        (answered,) = [m for m in it.blind.last.json["messages"] if m["role"] == "tool"]
        assert SEEN in json.dumps(answered)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (body(b'{"error":{"message":"overloaded"}}', status=503), "overloaded"),
        (slow_headers(FOREVER, words(CHAT, SEEN)), "did not answer within 0.3 seconds"),
        (words(CHAT, ""), ""),
        (body(b"no JSON"), ""),
    ],
    ids=["refused", "slow", "silent", "garbage"],
)
def test_a_description_that_fails_leaves_the_placeholder(reply: Any, why: str) -> None:
    with image_setup(timeout="300ms" if "within" in why else "30s") as it:
        it.seeing.script(reply)
        got = it.ask(ANTHROPIC, DATA)
        assert got.status == 200
        assert PLACEHOLDER in it.blind.last.body.decode()
        assert "the description failed" in it.notices(got)["images-replaced"]
        assert why in it.notices(got)["images-replaced"]


def test_a_failed_description_is_not_cached() -> None:
    with image_setup() as it:
        it.seeing.script(body(b'{"error":{"message":"overloaded"}}', status=503))
        for _ in range(2):
            it.ask(ANTHROPIC, DATA)
        assert SEEN in it.blind.last.body.decode()


def test_strict_refuses_a_placeholder() -> None:
    with image_setup(describe=False, more="strict = true") as it:
        got = it.ask(ANTHROPIC, DATA)
        assert got.status == 400
        assert "cannot see" in got.json["error"]["message"]


def test_a_vision_model_gets_the_image() -> None:
    with image_setup(sees="true") as it:
        got = it.ask(ANTHROPIC, DATA)
        assert DATA in it.blind.last.body.decode()
        assert it.notices(got) == {}
