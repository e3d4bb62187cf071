"""Files and batches of one key, asked for with another, by the official SDKs and at every route.

The keys share one account at the upstream. Nothing but the gateway knows who made what.
"""

import io
import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anthropic
import openai
import pytest
from google import genai
from google.genai import errors, types
from support.gateways import Gateway, Loop, gateway
from support.plain_http import Got, call, post
from support.sdk_clients import closed_after_test
from support.stand_in import Answer, Sent, StandIn, as_json, standing_in

from dragoman.gateway.app import routes
from dragoman.transport.server import HttpAnswer, HttpRequest, NotFound

ADMIN, ALICE, BOB, SAVER = "admin-secret-1234", "alice-secret-1234", "bob-secret-12345", "saver-secret-1234"
PLUM = b"PLUM-7 is in Alice's file"
_QUESTION: Any = {"model": "claude-x", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}]}
BATCHED: Any = [{"custom_id": "1", "params": _QUESTION}]


class Account:
    """An account at a provider of all protocols. It shows everything in it to whoever has its key."""

    def __init__(self) -> None:
        self.url = ""
        self.kept: dict[str, dict[str, Any]] = {}
        """What was made, by its id."""
        self._number = itertools.count(1)

    def __call__(self, sent: Sent) -> Answer:
        path = sent.path.partition("?")[0]
        if "x-goog-api-key" in sent.headers or path.startswith("/upload"):
            return self._gemini(sent, path)
        place, _, rest = re.sub(r"^/v1(/messages)?/", "", path).partition("/")
        if not rest and sent.method == "GET":
            mine = [one for id, one in self.kept.items() if id.startswith(place)]
            first, last = (mine[0]["id"], mine[-1]["id"]) if mine else (None, None)
            page = {"data": mine, "object": "list", "has_more": False, "first_id": first, "last_id": last}
            return as_json(page)
        if not rest:
            return as_json(self._made(place, "messages" in path))
        id, _, action = rest.partition("/")
        if id not in self.kept:
            return as_json({"error": {"message": "no such file"}}, 404)
        if action in ("content", "results"):
            return Answer(PLUM, "application/octet-stream")
        if action == "complete":
            return as_json({"id": id, "object": "upload", "file": self._made("files")})
        if sent.method == "DELETE":
            del self.kept[id]
            return as_json({"id": id, "object": "file", "type": "file_deleted", "deleted": True})
        if place == "batches" and "messages" not in path and not self.kept[id]["output_file_id"]:
            self.kept[id]["output_file_id"] = self._made("files")["id"]
        return as_json(self.kept[id])

    def _made(self, place: str, ours: bool = False) -> dict[str, Any]:
        id = f"{place}-{next(self._number)}"
        made: dict[str, Any] = {"id": id, "object": place, "created_at": 1, "filename": "plums.txt"}
        if place == "batches":
            made |= {"output_file_id": None, "endpoint": "/v1/chat/completions", "input_file_id": "f"}
            made |= {"completion_window": "24h", "status": "completed"}
        if ours:
            made |= {"type": "message_batch", "results_url": f"{self.url}/v1/messages/batches/{id}/results"}
        self.kept[id] = made
        return made

    def _gemini(self, sent: Sent, path: str) -> Answer:
        name = "/".join(path.split("/")[2:]).partition(":")[0]
        if path.startswith("/upload"):
            if sent.headers.get("x-goog-upload-command") == "start":
                url = f"{self.url}{path}?upload_id=u1&upload_protocol=resumable"
                return as_json({}, **{"x-goog-upload-url": url, "x-goog-upload-status": "active"})
            made = {"name": f"files/g{next(self._number)}", "mimeType": "text/plain", "sizeBytes": "5"}
            self.kept[made["name"]] = made
            return as_json({"file": made}, **{"x-goog-upload-status": "final"})
        if path.endswith(":batchGenerateContent"):
            made = {"name": f"batches/g{next(self._number)}", "metadata": {"state": "BATCH_STATE_PENDING"}}
            self.kept[made["name"]] = made
            return as_json(made)
        if "/" not in name and not name.startswith("models"):
            found = [one for id, one in self.kept.items() if id.startswith(name)]
            return as_json({"operations" if name == "batches" else "files": found})
        if path.startswith("/download"):
            return Answer(PLUM, "application/octet-stream")
        if sent.method == "DELETE":
            del self.kept[name]
            return as_json({})
        return as_json(self.kept[name]) if name in self.kept else as_json({"error": {"code": 404}}, 404)


@pytest.fixture
def loop() -> Iterator[Loop]:
    running = Loop()
    yield running
    running.close()


@pytest.fixture
def account() -> Iterator[StandIn]:
    answers = Account()
    with standing_in(answers) as place:
        answers.url = place.url
        yield place


def config(url: str, store: Path, credential: str = "env:KEY") -> str:
    upstreams = "".join(
        f"""
        [upstreams.{name}]
        protocol = "{protocol}"
        base_url = "{url}{version}"
        credential = "{credential}"
        other_endpoints = ["files", "batches"]
        """
        for name, protocol, version in (
            ("chat", "openai-chat", "/v1"), ("claude", "anthropic", ""), ("google", "gemini", ""),
        )
    )  # fmt: skip
    return f"""
    [server]
    keys = ["{ADMIN}"]
    store = "{store}"
    {upstreams}
    [[routes]]
    match = "gemini-*"
    to = "google/*"
    [keys.alice]
    secret = "{ALICE}"
    [keys.bob]
    secret = "{BOB}"
    [keys.saver]
    secret = "{SAVER}"
    budget = "5/month"
    """


@pytest.fixture
def served(loop: Loop, account: StandIn, tmp_path: Path) -> Iterator[Gateway]:
    with gateway(config(account.url, tmp_path / "s.db"), loop, env={"KEY": "the-upstreams-key"}) as running:
        yield running


class Ways(NamedTuple):
    """How an SDK uses files, or batches. Each function takes the client, and most take an id."""

    client: Callable[[str, str], Any]
    missing: type[Exception]
    make: Callable[[Any], str]
    listed: Callable[[Any], list[str]]
    each: tuple[Callable[[Any, str], Any], ...]
    """What can be done with one of them."""
    delete: Callable[[Any, str], Any] | None = None


def _openai(url: str, key: str) -> openai.OpenAI:
    return closed_after_test(openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0))


def _anthropic(url: str, key: str) -> anthropic.Anthropic:
    return closed_after_test(anthropic.Anthropic(base_url=url, api_key=key, max_retries=0))


def _google(url: str, key: str) -> genai.Client:
    return closed_after_test(genai.Client(api_key=key, http_options=types.HttpOptions(base_url=url)))


_TEXT = types.UploadFileConfig(mime_type="text/plain")
_INLINE: Any = [{"contents": [{"parts": [{"text": "?"}], "role": "user"}]}]
WAYS = {
    "openai files": Ways(
        _openai,
        openai.NotFoundError,
        lambda c: c.files.create(file=("a.txt", PLUM), purpose="batch").id,
        lambda c: [one.id for one in c.files.list().data],
        (lambda c, id: c.files.retrieve(id), lambda c, id: c.files.content(id).read()),
        lambda c, id: c.files.delete(id),
    ),
    "openai batches": Ways(
        _openai,
        openai.NotFoundError,
        lambda c: (
            c.batches.create(input_file_id="f", endpoint="/v1/chat/completions", completion_window="24h").id
        ),
        lambda c: [one.id for one in c.batches.list().data],
        (lambda c, id: c.batches.retrieve(id), lambda c, id: c.batches.cancel(id)),
    ),
    "anthropic files": Ways(
        _anthropic,
        anthropic.NotFoundError,
        lambda c: c.beta.files.upload(file=("a.txt", PLUM, "text/plain")).id,
        lambda c: [one.id for one in c.beta.files.list().data],
        (lambda c, id: c.beta.files.retrieve_metadata(id), lambda c, id: c.beta.files.download(id).read()),
        lambda c, id: c.beta.files.delete(id),
    ),
    "anthropic batches": Ways(
        _anthropic,
        anthropic.NotFoundError,
        lambda c: c.messages.batches.create(requests=BATCHED).id,
        lambda c: [one.id for one in c.messages.batches.list().data],
        (lambda c, id: c.messages.batches.retrieve(id), lambda c, id: c.messages.batches.cancel(id)),
        lambda c, id: c.messages.batches.delete(id),
    ),
    "gemini files": Ways(
        _google,
        errors.ClientError,
        lambda c: c.files.upload(file=io.BytesIO(PLUM), config=_TEXT).name,
        lambda c: [one.name for one in c.files.list()],
        (lambda c, id: c.files.get(name=id),),
        lambda c, id: c.files.delete(name=id),
    ),
    "gemini batches": Ways(
        _google,
        errors.ClientError,
        lambda c: c.batches.create(model="gemini-x", src=_INLINE).name,
        lambda c: [one.name for one in c.batches.list()],
        (lambda c, id: c.batches.get(name=id), lambda c, id: c.batches.cancel(name=id)),
        lambda c, id: c.batches.delete(name=id),
    ),
}


@pytest.mark.parametrize("what", WAYS)
def test_a_user_reaches_only_what_it_made(what: str, served: Gateway, account: StandIn) -> None:
    way = WAYS[what]
    clients = {key: way.client(served.url, key) for key in (ALICE, BOB, ADMIN)}
    alice, bob, admin = clients.values()
    hers, his = way.make(alice), way.make(bob)
    assert (way.listed(alice), way.listed(bob), way.listed(admin)) == ([hers], [his], [hers, his])
    account.sent.clear()
    for use in (*way.each, way.delete):
        if use is not None:
            with pytest.raises(way.missing, match=r"404.*this key made no"):
                use(bob, hers)
    assert account.sent == []  # the upstream never heard of it
    for use in way.each:
        use(alice, hers)
        use(admin, hers)
    if way.delete is not None:
        way.delete(alice, hers)
        assert way.listed(alice) == []
        with pytest.raises(way.missing):
            way.each[0](alice, hers)


def test_what_a_batch_writes_belongs_to_the_key_that_made_the_batch(served: Gateway) -> None:
    way = WAYS["openai batches"]
    alice, bob = _openai(served.url, ALICE), _openai(served.url, BOB)
    written = alice.batches.retrieve(way.make(alice)).output_file_id
    assert written is not None
    assert alice.files.content(written).read() == PLUM
    with pytest.raises(openai.NotFoundError):
        bob.files.content(written)


def test_an_upload_in_parts_belongs_to_the_key_that_began_it(served: Gateway) -> None:
    def asked(path: str, key: str) -> Got:
        return post(f"{served.url}/v1/uploads{path}", {}, x_api_key=key)

    upload = asked("", ALICE).json["id"]
    for path in ("parts", "complete", "cancel"):
        assert asked(f"/{upload}/{path}", BOB).status == 404
    file = asked(f"/{upload}/complete", ALICE).json["file"]["id"]
    shown = [call(f"{served.url}/v1/files/{file}", x_api_key=key).status for key in (ALICE, BOB, ADMIN)]
    assert shown == [200, 404, 200]


def test_a_page_names_no_entry_of_others_as_its_first_or_last(served: Gateway) -> None:
    alice, bob = _anthropic(served.url, ALICE), _anthropic(served.url, BOB)
    way = WAYS["anthropic files"]
    made = [way.make(client) for client in (alice, bob, alice)]
    page = call(f"{served.url}/v1/files", x_api_key=BOB, anthropic_version="2023-06-01").json
    assert [one["id"] for one in page["data"]] == [page["first_id"]] == [page["last_id"]] == [made[1]]


def test_no_route_gives_bob_a_file_of_alice(served: Gateway, account: StandIn) -> None:
    """Every route whose path names a file or a batch, so that a new one cannot be forgotten."""

    async def answer(request: HttpRequest) -> HttpAnswer:
        raise NotFound

    makers = {
        "x-api-key": ("anthropic files", "anthropic batches"),
        "authorization": ("openai files", "openai batches"),
    }
    named = {"x-goog-api-key": ("gemini files", "gemini batches"), **makers}
    paths = [
        (route.method, route.path)
        for route in routes(served.state, answer)
        if "{id}" in route.path and re.search(r"/(files|uploads|batches)/", route.path)
    ]
    assert len(paths) > 20
    for header, whats in named.items():
        for what in whats:
            hers = WAYS[what].make(WAYS[what].client(served.url, ALICE)).rpartition("/")[2]
            account.sent.clear()
            for method, path in paths:
                url = served.url + re.sub(r"\{\w+:(\w+)[^}]*\}", r"\1", path).replace("{id}", hers)
                sent = {header: f"Bearer {BOB}" if header == "authorization" else BOB}
                if what.startswith("anthropic"):
                    sent["anthropic-version"] = "2023-06-01"
                got = call(url, method, {} if method == "POST" else None, **sent)
                assert got.status == 404, (method, path, got)
                assert b"PLUM" not in got.body
            assert account.sent == []


def test_the_owner_of_a_file_outlives_the_process(loop: Loop, account: StandIn, tmp_path: Path) -> None:
    text, way = config(account.url, tmp_path / "s.db"), WAYS["openai files"]
    with gateway(text, loop, env={"KEY": "k"}) as first:
        hers = way.make(_openai(first.url, ALICE))
    with gateway(text, loop, env={"KEY": "k"}) as second:
        assert way.listed(_openai(second.url, ALICE)) == [hers]
        assert way.listed(_openai(second.url, BOB)) == []


def test_a_client_with_a_key_of_the_upstream_has_its_own_account(
    loop: Loop, account: StandIn, tmp_path: Path
) -> None:
    with gateway(config(account.url, tmp_path / "s.db", "client"), loop) as served:
        both = {"x_api_key": BOB, "authorization": "Bearer bobs-own-key-at-the-upstream"}
        assert post(f"{served.url}/v1/files", {}, **both).status == 200
        account.answer.kept["files-99"] = {"id": "files-99"}  # type: ignore[attr-defined]
        assert call(f"{served.url}/v1/files/files-99", **both).status == 200
        assert len(call(f"{served.url}/v1/files", **both).json["data"]) == 2


@pytest.mark.parametrize("what", [what for what in WAYS if what.endswith("batches")])
def test_a_key_with_a_budget_makes_no_batch(what: str, served: Gateway, account: StandIn) -> None:
    """Nobody tells the gateway what a batch costs."""
    way = WAYS[what]
    client = way.client(served.url, SAVER)
    denied = (openai.PermissionDeniedError, anthropic.PermissionDeniedError, errors.ClientError)
    with pytest.raises(denied, match=r"has a budget \(\$5/month\)") as refused:
        way.make(client)
    assert "batches" in json.dumps(str(refused.value))
    assert account.sent == []
    assert way.listed(client) == []
