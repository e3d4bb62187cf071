"""Recordings replay byte for byte: every protocol pair, streamed and not, with every behaviour."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest
from gateway_harness import SHORT, Gateway, Got, ask_all, before, post
from support.exchanges import declared
from support.scripted_talk import written
from support.scripted_upstream import Reply, ScriptedUpstream
from support.wires import PROTOCOLS

from dragoman.conform import corpus
from dragoman.model.messages import Message, Request, Settings, Text
from dragoman.recording import Recording, load, loads, replay

# Good behaviour, and every behaviour that makes the gateway change the answer.
MODELS = (
    "demo", "demo-parallel", "demo-thinking", "demo-sealed", "demo-refusal", "demo-fragments",
    "demo-misnamed", "demo-stringly", "demo-wrapped", "demo-syntax", "demo-invented", "demo-ghost",
    "demo-duplicate", "demo-interleaved", "demo-leak", "demo-think", "demo-length", "demo-empty", "demo-cut",
    "demo-reset", "demo-error", "demo-overloaded", "demo-ratelimit", "demo-500", "demo-html",
    "demo-garbage", "demo-blank",
)  # fmt: skip
SERVER = 'retries = 0\nring = "200MB"\nrecord = "{}"'


def recorded(folder: Path, answers: Iterable[Got]) -> list[tuple[Got, Recording]]:
    files = {path.stem.rpartition("-")[2]: path for path in folder.iterdir()}
    return [(got, load(files[got.headers["x-dragoman-exchange"]])) for got in answers]


def is_the_same(got: Got, recording: Recording) -> None:
    """The client's bytes equal those of the recording and those of a replay."""
    played = replay(recording)
    assert recording.sent == got.body
    assert played.client == got.body
    assert played.same


async def downloaded(gateway: Gateway, got: Got) -> Recording:
    url = f"{gateway.url}/exchanges/{got.headers['x-dragoman-exchange']}/recording"
    async with gateway.session.get(url) as response:
        assert response.status == 200
        return loads(await response.read())


@pytest.mark.parametrize("client", PROTOCOLS)
def test_every_pair_and_behaviour(client: str, tmp_path: Path) -> None:
    async def scene() -> list[Got]:
        async with before(ScriptedUpstream(), server=SERVER.format(tmp_path)) as gateway:
            answers: list[Got] = []
            for model in MODELS:
                answers += await ask_all(gateway, client, model)
            for got in answers[:8]:
                is_the_same(got, await downloaded(gateway, got))
            return answers

    pairs = recorded(tmp_path, asyncio.run(scene()))
    assert len(pairs) == 4 * 2 * len(MODELS)
    for got, recording in pairs:
        is_the_same(got, recording)


@pytest.mark.parametrize("client", PROTOCOLS)
def test_every_case_of_the_corpus(client: str, tmp_path: Path) -> None:
    cases = corpus.cases()

    async def scene() -> list[Got]:
        upstream = ScriptedUpstream()
        async with before(upstream, server=SERVER.format(tmp_path)) as gateway:
            answers: list[Got] = []
            for number, case in enumerate(cases):
                upstream.script(
                    Reply(steps=corpus.upstream_chunks(case), content_type=corpus.content_type(case))
                )
                request = Request(
                    model=f"{SHORT[case['upstream_protocol']]}/m",
                    messages=(Message("user", (Text("Hi"),)),),
                    tools=declared(case["request_tools"]),
                    stream=number % 4 > 0,
                    settings=Settings(max_tokens=99),
                )
                answers.append(await post(gateway, client, *written(client, request), stream=request.stream))
            return answers

    for got, recording in recorded(tmp_path, asyncio.run(scene())):
        is_the_same(got, recording)
