"""The other endpoints of each protocol, asked by the official SDKs, directly and through the gateway."""

import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from anthropic import Anthropic
from google import genai
from google.genai import types
from openai import NotFoundError, OpenAI, RateLimitError
from support.gateways import Gateway, Loop, gateway
from support.sdk_clients import closed_after_test
from support.stand_in import Answer, Sent, StandIn, as_json, standing_in

BATCH: dict[str, Any] = {
    "id": "batch_1",
    "object": "batch",
    "endpoint": "/v1/chat/completions",
    "input_file_id": "file-1",
    "completion_window": "24h",
    "status": "validating",
    "created_at": 1,
}
FILE: dict[str, Any] = {
    "id": "file-1",
    "object": "file",
    "bytes": 5,
    "created_at": 1,
    "filename": "a.jsonl",
    "purpose": "batch",
    "status": "processed",
}
MESSAGES: dict[str, Any] = {
    "id": "msgbatch_1",
    "type": "message_batch",
    "processing_status": "ended",
    "request_counts": {"processing": 0, "succeeded": 1, "errored": 0, "canceled": 0, "expired": 0},
    "created_at": "2026-01-01T00:00:00Z",
    "expires_at": "2026-01-02T00:00:00Z",
}
RESULT: dict[str, Any] = {
    "custom_id": "one",
    "result": {"type": "canceled"},
}
ANTHROPIC_FILE: dict[str, Any] = {
    "id": "file_1",
    "type": "file",
    "filename": "a.txt",
    "mime_type": "text/plain",
    "size_bytes": 5,
    "created_at": "2026-01-01T00:00:00Z",
    "downloadable": True,
}
GEMINI_FILE: dict[str, Any] = {
    "name": "files/abc",
    "mimeType": "text/plain",
    "sizeBytes": "5",
    "state": "ACTIVE",
}
SOUND = bytes(range(256)) * 400


class Provider:
    """A server with the other endpoints of all protocols."""

    def __init__(self) -> None:
        self.url = ""

    def __call__(self, sent: Sent) -> Answer:
        path = sent.path.partition("?")[0]
        if "anthropic-version" in sent.headers:
            return self._anthropic(sent, path)
        if "x-goog-api-key" in sent.headers or path.startswith("/upload"):
            return self._gemini(sent, path)
        return self._openai(sent, path)

    def _openai(self, sent: Sent, path: str) -> Answer:
        if path == "/v1/embeddings":
            data = [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}]
            usage = {"prompt_tokens": 7, "total_tokens": 7}
            return as_json({"object": "list", "data": data, "model": sent.json["model"], "usage": usage})
        if path == "/v1/moderations":
            return as_json({"id": "m", "model": "omni", "results": []})
        if path == "/v1/rerank":
            return as_json({"results": [{"index": 0, "relevance_score": 0.5}]})
        if path.startswith("/v1/images/"):
            return as_json({"created": 1, "data": [{"b64_json": "aGk="}]})
        if path == "/v1/audio/speech" or path.endswith("/content"):
            return Answer(SOUND, "audio/mpeg")
        if path.startswith("/v1/audio/"):
            return as_json({"text": "hello"})
        if path.startswith("/v1/batches"):
            return as_json(
                {"object": "list", "data": [BATCH]}
                if path == "/v1/batches" and sent.method == "GET"
                else BATCH
            )
        if sent.method == "DELETE":
            return as_json({"id": "file-1", "object": "file", "deleted": True})
        if path.startswith("/v1/files"):
            return as_json(
                {"object": "list", "data": [FILE]} if path == "/v1/files" and sent.method == "GET" else FILE
            )
        return as_json({"error": {"message": "no such path"}}, 404)

    def _anthropic(self, sent: Sent, path: str) -> Answer:
        batch = MESSAGES | {"results_url": f"{self.url}/v1/messages/batches/msgbatch_1/results"}
        if path.endswith("/results"):
            return Answer(json.dumps(RESULT).encode() + b"\n", "application/x-jsonl")
        if path.startswith("/v1/messages/batches"):
            listing = path == "/v1/messages/batches" and sent.method == "GET"
            return as_json(
                {"data": [batch], "has_more": False, "first_id": None, "last_id": None} if listing else batch
            )
        if path.endswith("/content"):
            return Answer(SOUND, "application/octet-stream")
        if sent.method == "DELETE":
            return as_json({"id": "file_1", "type": "file_deleted"})
        listing = path == "/v1/files" and sent.method == "GET"
        return as_json({"data": [ANTHROPIC_FILE], "has_more": False} if listing else ANTHROPIC_FILE)

    def _gemini(self, sent: Sent, path: str) -> Answer:
        if path.endswith("mbedContents"):
            return as_json({"embeddings": [{"values": [0.5]}]})
        if path.endswith(":embedContent"):
            return as_json({"embedding": {"values": [0.5]}})
        if path.startswith("/upload"):
            if sent.headers.get("x-goog-upload-command") == "start":
                url = f"{self.url}{path}?upload_id=u1&upload_protocol=resumable"
                return as_json({}, **{"x-goog-upload-url": url, "x-goog-upload-status": "active"})
            return as_json({"file": GEMINI_FILE}, **{"x-goog-upload-status": "final"})
        if sent.method == "DELETE":
            return as_json({})
        return as_json({"files": [GEMINI_FILE]} if path.endswith("/files") else GEMINI_FILE)


@pytest.fixture
def loop() -> Iterator[Loop]:
    running = Loop()
    yield running
    running.close()


@pytest.fixture
def provider() -> Iterator[StandIn]:
    answers = Provider()
    with standing_in(answers) as place:
        answers.url = place.url
        yield place


def config(url: str, more: str = "") -> str:
    return f"""
    [server]
    retries = 0
    keys = ["the-gateways-key"]
    {more}
    [prices]
    "chat/text-embedding-3-small" = {{ input = 0.02, output = 0 }}
    [upstreams.chat]
    protocol = "openai-chat"
    base_url = "{url}/v1"
    credential = "env:KEY"
    other_endpoints = ["files", "batches", "moderations"]
    [upstreams.claude]
    protocol = "anthropic"
    base_url = "{url}"
    credential = "env:KEY"
    other_endpoints = ["files", "batches"]
    [upstreams.google]
    protocol = "gemini"
    base_url = "{url}"
    credential = "env:KEY"
    other_endpoints = ["files", "embeddings"]
    [[routes]]
    match = "claude-*"
    to = "claude/*"
    [[routes]]
    match = "gemini-*"
    to = "google/*"
    [[routes]]
    match = "my-embedder"
    to = "chat/text-embedding-3-small"
    [[routes]]
    match = "my-listener"
    to = "chat/whisper-1"
    [[routes]]
    match = "my-google"
    to = "google/gemini-embedding-001"
    [[routes]]
    match = ["text-*", "omni-*", "gpt-*", "whisper-*", "tts-*", "re-*"]
    to = "chat/*"
    """


@pytest.fixture
def through(loop: Loop, provider: StandIn) -> Iterator[Gateway]:
    with gateway(config(provider.url), loop, env={"KEY": "the-upstreams-key"}) as running:
        yield running


def comparable(sent: Sent) -> tuple[str, str, bytes]:
    """A request without what differs between two equal calls: the boundary of its form."""
    boundary = re.search(r"boundary=(\S+)", sent.headers.get("content-type", ""))
    body = sent.body.replace(boundary[1].encode(), b"BOUNDARY") if boundary else sent.body
    return sent.method, sent.path, body


def openai(url: str, key: str) -> OpenAI:
    return closed_after_test(OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0))


OPENAI: dict[str, Callable[[OpenAI], Any]] = {
    "embeddings": lambda c: c.embeddings.create(
        model="text-embedding-3-small", input="hi", encoding_format="float"
    ),
    "moderations": lambda c: c.moderations.create(model="omni-moderation-latest", input="hi"),
    "moderations without a model": lambda c: c.moderations.create(input="hi"),
    "images": lambda c: c.images.generate(model="gpt-image-1", prompt="a cat"),
    "image edits": lambda c: c.images.edit(model="gpt-image-1", prompt="a cat", image=("a.png", b"png")),
    "speech": lambda c: c.audio.speech.create(model="tts-1", voice="alloy", input="hi").read(),
    "transcriptions": lambda c: c.audio.transcriptions.create(model="whisper-1", file=("a.mp3", SOUND)),
    "file upload": lambda c: c.files.create(file=("a.jsonl", SOUND * 20), purpose="batch"),
    "file list": lambda c: c.files.list().data,
    "file": lambda c: c.files.retrieve("file-1"),
    "file content": lambda c: c.files.content("file-1").read(),
    "file deletion": lambda c: c.files.delete("file-1"),
    "batch": lambda c: c.batches.create(
        input_file_id="file-1", endpoint="/v1/chat/completions", completion_window="24h"
    ),
    "batch list": lambda c: c.batches.list(limit=3).data,
    "batch retrieval": lambda c: c.batches.retrieve("batch_1"),
    "batch cancellation": lambda c: c.batches.cancel("batch_1"),
}


@pytest.mark.parametrize("what", OPENAI)
def test_openais_sdk(what: str, provider: StandIn, through: Gateway) -> None:
    direct = OPENAI[what](openai(provider.url, "the-upstreams-key"))
    asked = provider.only
    passed = OPENAI[what](openai(through.url, "the-gateways-key"))
    got = provider.only
    assert passed == direct
    assert comparable(got) == comparable(asked)
    assert got.headers["authorization"] == "Bearer the-upstreams-key"
    assert "the-gateways-key" not in str(got)


def anthropic(url: str, key: str) -> Anthropic:
    return closed_after_test(Anthropic(base_url=url, api_key=key, max_retries=0))


ASKED: Any = [
    {
        "custom_id": "one",
        "params": {
            "model": "claude-sonnet-4-5",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "hi"}],
        },
    }
]
ANTHROPIC: dict[str, Callable[[Anthropic], Any]] = {
    "file upload": lambda c: c.beta.files.upload(file=("a.txt", SOUND, "text/plain")),
    "file list": lambda c: c.beta.files.list(limit=5).data,
    "file": lambda c: c.beta.files.retrieve_metadata("file_1"),
    "file content": lambda c: c.beta.files.download("file_1").read(),
    "file deletion": lambda c: c.beta.files.delete("file_1"),
    "batch": lambda c: c.messages.batches.create(requests=ASKED).id,
    "batch of the beta": lambda c: c.beta.messages.batches.create(requests=ASKED, betas=["x-2026"]).id,
    "batch list": lambda c: [batch.id for batch in c.messages.batches.list().data],
    "batch retrieval": lambda c: c.messages.batches.retrieve("msgbatch_1").id,
    "batch cancellation": lambda c: c.messages.batches.cancel("msgbatch_1").id,
    "batch deletion": lambda c: c.messages.batches.delete("msgbatch_1").id,
}


@pytest.mark.parametrize("what", ANTHROPIC)
def test_anthropics_sdk(what: str, provider: StandIn, through: Gateway) -> None:
    direct = ANTHROPIC[what](anthropic(provider.url, "the-upstreams-key"))
    asked = provider.only
    passed = ANTHROPIC[what](anthropic(through.url, "the-gateways-key"))
    got = provider.only
    assert passed == direct
    assert comparable(got) == comparable(asked)
    for name in ("anthropic-version", "anthropic-beta"):
        assert got.headers.get(name) == asked.headers.get(name)
    assert "the-upstreams-key" in str(got.headers)
    assert "the-gateways-key" not in str(got)


def test_the_results_of_a_batch_come_through_the_gateway(provider: StandIn, through: Gateway) -> None:
    client = anthropic(through.url, "the-gateways-key")
    (result,) = client.messages.batches.results("msgbatch_1")
    assert result.custom_id == "one"
    assert [sent.path for sent in provider.sent] == [
        "/v1/messages/batches/msgbatch_1",
        "/v1/messages/batches/msgbatch_1/results",
    ]
    assert all("the-gateways-key" not in str(sent) for sent in provider.sent)


def google(url: str, key: str) -> genai.Client:
    return closed_after_test(genai.Client(api_key=key, http_options=types.HttpOptions(base_url=url)))


def upload(client: genai.Client) -> Any:
    given = types.UploadFileConfig(mime_type="text/plain")
    return client.files.upload(file=io.BytesIO(SOUND * 100), config=given)


GEMINI: dict[str, Callable[[genai.Client], Any]] = {
    "embeddings": lambda c: (
        c.models.embed_content(model="gemini-embedding-001", contents=["a", "b"]).embeddings
    ),
    "file upload": upload,
    "file": lambda c: c.files.get(name="files/abc"),
    "file list": lambda c: list(c.files.list()),
    "file deletion": lambda c: c.files.delete(name="files/abc") and None,
}


@pytest.mark.parametrize("what", GEMINI)
def test_googles_sdk(what: str, provider: StandIn, through: Gateway) -> None:
    # A client that nothing refers to closes its connections, also in the middle of a call.
    clients = google(provider.url, "the-upstreams-key"), google(through.url, "the-gateways-key")
    direct = GEMINI[what](clients[0])
    asked = [provider.sent.pop(0) for _ in list(provider.sent)]
    passed = GEMINI[what](clients[1])
    assert passed == direct
    assert [comparable(got) for got in provider.sent] == [comparable(one) for one in asked]
    for got, one in zip(provider.sent, asked, strict=True):
        uploading = {name for name in one.headers if name.startswith("x-goog-upload-")}
        assert {name: got.headers.get(name) for name in uploading} == {n: one.headers[n] for n in uploading}
        assert got.headers["x-goog-api-key"] == "the-upstreams-key"


def test_a_model_gets_the_name_of_its_target(provider: StandIn, through: Gateway) -> None:
    client = openai(through.url, "the-gateways-key")
    client.embeddings.create(model="my-embedder", input="hi", encoding_format="float")
    sent = provider.only.json
    assert sent == {"input": "hi", "model": "text-embedding-3-small", "encoding_format": "float"}
    client.embeddings.create(model="chat/other", input="hi")
    assert provider.only.json["model"] == "other"
    client.audio.transcriptions.create(model="my-listener", file=("a.mp3", SOUND), prompt="my-listener")
    form = provider.only.body
    assert b'name="model"\r\n\r\nwhisper-1\r\n' in form
    assert b'name="prompt"\r\n\r\nmy-listener\r\n' in form
    assert SOUND in form
    asking = google(through.url, "the-gateways-key")
    asking.models.embed_content(model="my-google", contents=["a", "b"])
    embedding = provider.only
    assert embedding.path.endswith("/models/gemini-embedding-001:batchEmbedContents")
    assert {one["model"] for one in embedding.json["requests"]} == {"models/gemini-embedding-001"}


def receipts(through: Gateway) -> list[Any]:
    return ask(through, "GET", "/exchanges").json()["exchanges"]


def ask(through: Gateway, method: str, path: str, **more: Any) -> httpx2.Response:
    headers = {"authorization": "Bearer the-gateways-key", **more.pop("headers", {})}
    with httpx2.Client(timeout=20) as client:
        return client.request(method, through.url + path, headers=headers, **more)


def test_each_request_has_a_receipt_and_is_counted(provider: StandIn, through: Gateway) -> None:
    client = openai(through.url, "the-gateways-key")
    client.embeddings.create(model="my-embedder", input="hi")
    client.files.create(file=("a.jsonl", SOUND), purpose="batch")
    file, embedding = receipts(through)
    assert (embedding["model"], embedding["target"]) == ("my-embedder", "chat/text-embedding-3-small")
    assert (embedding["outcome"], embedding["usage"]["input"]) == ("ok", 7)
    assert embedding["cost"] == pytest.approx(7 * 0.02 / 1_000_000)
    assert (file["model"], file["target"], file["outcome"]) == ("", "chat/files", "ok")
    whole = ask(through, "GET", f"/exchanges/{embedding['id']}").json()
    assert [notice["rule"] for notice in whole["notices"]] == ["passed-through"]
    assert whole["attempts"][0]["why"] == 'route "my-embedder"'
    page = ask(through, "GET", "/metrics").text
    labels = 'client="openai-chat",model="text-embedding-3-small",outcome="ok",upstream="chat"'
    assert f"dragoman_requests_total{{{labels}}} 1.0" in page


def test_a_request_needs_a_key_of_the_gateway(provider: StandIn, through: Gateway) -> None:
    for path in ("/v1/embeddings", "/v1/files", "/upload/v1beta/files"):
        answer = httpx2.post(through.url + path, json={"model": "text-embedding-3-small"})
        assert answer.status_code == 401
    assert provider.sent == []


UNROUTED: dict[str, tuple[str, str, Any, dict[str, str], str]] = {
    "another protocol": ("POST", "/v1/embeddings", {"model": "claude-x"}, {}, "send it to chat"),
    "no route": ("POST", "/v1/embeddings", {"model": "nobody"}, {}, "add a [[routes]] entry"),
    "nobody has it": ("POST", "/v1/images/generations", {"prompt": "x"}, {}, 'other_endpoints = ["images"]'),
    "Gemini's batches": ("GET", "/v1beta/batches", None, {}, 'other_endpoints = ["batches"]'),
    "a path that leads elsewhere": ("GET", "/v1/files/%2e%2e/content", None, {}, "does not exist"),
}


@pytest.mark.parametrize("why", UNROUTED)
def test_an_unroutable_request_is_reported(why: str, provider: StandIn, through: Gateway) -> None:
    method, path, body, headers, said = UNROUTED[why]
    answer = ask(through, method, path, json=body, headers=headers)
    assert answer.status_code == 404
    assert said in answer.json()["error"]["message"]
    assert provider.sent == []


def test_a_missing_endpoint_is_the_sdks_own_error(through: Gateway) -> None:
    with pytest.raises(NotFoundError, match="send it to chat"):
        openai(through.url, "the-gateways-key").embeddings.create(model="claude-x", input="hi")


def test_an_upstreams_error_passes_as_it_is(provider: StandIn, through: Gateway) -> None:
    error = {"error": {"message": "slow down, the-upstreams-key", "type": "odd", "extra": [1]}}
    provider.answer = lambda sent: as_json(error, 429, **{"retry-after": "7"})
    with pytest.raises(RateLimitError) as raised:
        openai(through.url, "the-gateways-key").embeddings.create(model="my-embedder", input="hi")
    body: Any = raised.value.body
    assert (body["type"], body["extra"]) == ("odd", [1])
    assert "the-upstreams-key" not in body["message"]
    assert raised.value.response.headers["retry-after"] == "7"
    (receipt,) = receipts(through)
    assert (receipt["outcome"], receipt["status"]) == ("rate_limit", 429)


def test_the_next_target_of_a_route_is_tried(loop: Loop, provider: StandIn) -> None:
    with standing_in(lambda sent: as_json({"error": {"message": "down"}}, 503)) as broken:
        toml = f"""
        [upstreams.first]
        protocol = "openai-chat"
        base_url = "{broken.url}/v1"
        [upstreams.second]
        protocol = "openai-responses"
        base_url = "{provider.url}/v1"
        [[routes]]
        match = "e"
        to = ["first/a", "second/b"]
        """
        with gateway(toml, loop) as through:
            made = openai(through.url, "any").embeddings.create(model="e", input="hi")
            assert made.model == "b"
            (receipt,) = receipts(through)
            assert receipt["target"] == "second/b"
        assert broken.only.json["model"] == "a"


def test_bodies_are_bounded(loop: Loop, provider: StandIn) -> None:
    limits = 'max_body = "100kB"\n    max_upload = "1MB"'
    with gateway(config(provider.url, limits), loop, env={"KEY": "k"}) as through:
        large = {"model": "my-embedder", "input": "x" * 200_000}
        answer = ask(through, "POST", "/v1/embeddings", json=large)
        assert (answer.status_code, "server.max_body" in answer.text) == (413, True)
        form = {"file": ("a", b"x" * 500_000)}
        assert ask(through, "POST", "/v1/files", files=form).status_code == 200
        assert len(provider.only.body) > 500_000
        answer = ask(through, "POST", "/v1/files", files={"file": ("a", b"x" * 2_000_000)})
        assert (answer.status_code, "server.max_upload" in answer.text) == (413, True)
        assert receipts(through)[0]["outcome"] == "too_large"


def test_an_upload_of_unknown_length(provider: StandIn, through: Gateway) -> None:
    pieces = (SOUND for _ in range(30))
    answer = ask(through, "POST", "/v1/files", content=pieces, headers={"content-type": "text/plain"})
    assert answer.status_code == 200
    assert provider.only.body == SOUND * 30


def test_an_answer_that_breaks_off_does_not_look_complete(provider: StandIn, through: Gateway) -> None:
    provider.answer = lambda sent: Answer(SOUND, "audio/mpeg", cut=True)
    with pytest.raises(httpx2.HTTPError):
        ask(through, "GET", "/v1/files/file-1/content")
    (receipt,) = receipts(through)
    assert receipt["outcome"] == "upstream"


def test_invalid_bodies_are_refused(through: Gateway) -> None:
    for content, said in ((b"{", "not valid JSON"), (b'{"model": 5}', "must be a string")):
        answer = ask(through, "POST", "/v1/embeddings", content=content)
        assert (answer.status_code, said in answer.text) == (400, True)


def test_a_receipt_says_that_a_budget_does_not_count_an_answer_without_token_counts(
    loop: Loop, provider: StandIn
) -> None:
    keys = '[keys.limited]\nsecret = "env:LIMITED"\nbudget = ["1/day", "9 tokens/day"]'
    env = {"KEY": "k", "LIMITED": "the-limited-key"}
    with gateway(config(provider.url) + keys, loop, env=env) as through:
        headers = {"authorization": "Bearer the-limited-key"}
        asked = {"model": "gpt-image-1", "prompt": "a cat"}
        assert ask(through, "POST", "/v1/images/generations", json=asked, headers=headers).status_code == 200
        (receipt,) = ask(through, "GET", "/exchanges", headers=headers).json()["exchanges"]
        full = ask(through, "GET", f"/exchanges/{receipt['id']}", headers=headers).json()
        assert full["limits"] == [
            f"key limited: {budget} does not count it, chat/gpt-image-1 sent no token counts"
            for budget in ("$1/day", "9 tokens/day")
        ]


def test_the_limits_of_a_key_apply(loop: Loop, provider: StandIn) -> None:
    keys = """
    [keys.limited]
    secret = "env:LIMITED"
    models = ["my-embedder"]
    tokens = "10/min"
    """
    with gateway(
        config(provider.url) + keys, loop, env={"KEY": "k", "LIMITED": "the-limited-key"}
    ) as through:
        headers = {"authorization": "Bearer the-limited-key"}
        asked = {"model": "my-embedder", "input": "hi"}
        answers = [ask(through, "POST", "/v1/embeddings", json=asked, headers=headers) for _ in range(4)]
        assert (answers[0].status_code, answers[-1].status_code) == (200, 429)
        assert "retry-after" in answers[-1].headers
        other = asked | {"model": "text-embedding-3-small"}
        assert ask(through, "POST", "/v1/embeddings", json=other, headers=headers).status_code == 403
        nameless = ask(through, "GET", "/v1/batches", headers=headers)
        assert (nameless.status_code, "names none" in nameless.text) == (403, True)
        assert {receipt["key"] for receipt in receipts(through)} == {"limited"}
