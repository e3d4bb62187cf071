"""A small run of the whole bench: upstream, load generator, reference programs and Dragoman as processes."""

import contextlib
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.answers import ANTHROPIC, CHAT
from bench.marks import MARK
from bench.requests import Talk, conversation
from bench.session import Bench
from bench.shapes import BRIEF, SHORT, Shape
from bench.subjects import DRAGOMAN, OURS, Subject
from bench.talks import ALL

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="CPU of other processes is read from /proc")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder: Path = tmp_path_factory.mktemp("bench")
    with contextlib.closing(Bench(folder)) as bench:
        yield bench


@pytest.mark.parametrize("subject", OURS, ids=lambda subject: subject.name)
def test_every_subject_answers_correctly_and_has_a_cost(bench: Bench, subject: Subject) -> None:
    running = bench.running(subject)
    for pair in subject.pairs:
        job = bench.job(subject, running, pair, SHORT, requests=4, at_once=2)
        assert bench.cpu(running, job) > 0
    assert running.memory() > 10


@pytest.mark.parametrize("subject", [s for s in OURS if (ANTHROPIC, CHAT) in s.pairs], ids=lambda s: s.name)
@pytest.mark.parametrize("kind", ALL)
def test_long_conversations_arrive_whole(bench: Bench, subject: Subject, kind: str) -> None:
    talk = Talk(1, 20, kind=kind)
    pair = (talk.client, CHAT)
    job = bench.job(subject, bench.running(subject), pair, BRIEF, talks=[talk, talk.gone_on()], requests=2)
    assert bench.answered(job).requests == 2


def test_reasoning_goes_back_to_its_issuer(bench: Bench) -> None:
    talk = Talk(3, turns=4, kind="agent")
    pair = (ANTHROPIC, ANTHROPIC)
    job = bench.job(DRAGOMAN, bench.running(DRAGOMAN), pair, BRIEF, talks=[talk, talk.gone_on()], requests=2)
    assert bench.answered(job).requests == 2


def test_an_incomplete_history_is_refused(bench: Bench) -> None:
    asked = conversation(Talk(1, turns=2), BRIEF).replace(MARK.encode(), b"", 1)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{bench.upstream_port}/v1/chat/completions", asked)
    assert b"65 of 66 #mark" in refused.value.read()


def test_paced_streams_arrive_whole(bench: Bench) -> None:
    dragoman = OURS[-1]
    shape = Shape(texts=8, fragments=0, every_ms=5)
    job = bench.job(dragoman, bench.running(dragoman), (CHAT, CHAT), shape, requests=3, at_once=3)
    assert bench.answered(job).requests == 3
